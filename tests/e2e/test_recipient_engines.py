"""A recipient reads one directory with each engine, and the store refuses the directory beside it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.components import ALL_IN_ONE, BOTO3, DELTALAKE, DUCKDB, SEAWEEDFS
from tests.e2e.official_client import ClientError
from tests.e2e.recipient_gateway import Shared, sharing_gateway
from tests.e2e.recipient_lake import (
    ARCHIVE,
    BUCKET,
    IDS,
    LOCATIONS,
    ORDERS,
    RETURNS,
    SHARE,
    RecipientProcess,
    log_key,
    recipient,
    run_command,
    upload,
)
from tests.e2e.recipient_store import read_policy
from tests.fakes.credential_gateway import CredentialGateway, serving
from tests.stores.seaweedfs import SeaweedFS

pytestmark = pytest.mark.component(SEAWEEDFS)

ENGINES = [
    pytest.param("deltalake", marks=pytest.mark.component(DELTALAKE)),
    "polars",
    pytest.param("duckdb", marks=pytest.mark.component(DUCKDB)),
]


@pytest.fixture(scope="module")
def lake(seaweedfs, tmp_path_factory) -> SeaweedFS:
    upload(seaweedfs, tmp_path_factory.mktemp("tables"))
    store: SeaweedFS = seaweedfs
    return store


@pytest.fixture(
    scope="module",
    params=[
        # CI has the stand-in in test_recipient_refresh.
        pytest.param("stand-in", marks=pytest.mark.release),
        pytest.param("gateway", marks=pytest.mark.component(ALL_IN_ONE)),
    ],
)
def shared(request, lake, tmp_path_factory) -> Iterator[Shared]:
    start = _stand_in if request.param == "stand-in" else _gateway
    with start(lake, tmp_path_factory.mktemp("shared")) as tables:
        yield tables


@pytest.fixture(scope="module")
def reader(shared) -> Iterator[RecipientProcess]:
    with recipient() as process:
        yield process


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_reads_the_shared_table(shared, reader, engine):
    assert reader.call("ids", engine, shared.address(ORDERS)) == IDS[ORDERS]


@pytest.mark.parametrize("engine", ENGINES)
def test_two_tables_of_one_bucket_are_open_at_once_with_a_credential_each(shared, reader, engine):
    found = reader.call("ids_together", engine, [shared.address(ORDERS), shared.address(ARCHIVE)])

    assert found == [IDS[ORDERS], IDS[ARCHIVE]]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_store_refuses_the_neighbour_to_an_engine(shared, reader, engine):
    reader.call("open", shared.address(ORDERS), mode="dir")
    assert reader.call("ids_elsewhere", engine, shared.address(ORDERS), LOCATIONS[ORDERS]) == IDS[ORDERS]

    with pytest.raises(ClientError, match=r"403|lacked the necessary privileges|AccessDenied"):
        reader.call("ids_elsewhere", engine, shared.address(ORDERS), LOCATIONS[ARCHIVE])


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_rows_that_a_deletion_vector_deletes_are_not_read(shared, reader, engine):
    assert reader.call("ids", engine, shared.address(RETURNS)) == IDS[RETURNS]


def test_an_engine_that_holds_the_lock_of_python_still_gets_its_credential(shared, reader):
    reader.call("open", shared.address(ORDERS))

    assert reader.call("is_delta_table", shared.address(ORDERS)) is True


@pytest.mark.component(BOTO3)
def test_boto3_reads_through_a_credential_process(shared, tmp_path):
    config = tmp_path / "config"
    stanza = run_command("aws-config", shared.address(ORDERS), "--name", "orders")
    assert stanza.returncode == 0, stanza.stderr
    config.write_text(stanza.stdout)

    # Found by its own path: nothing of ours is on this one.
    with recipient(AWS_CONFIG_FILE=str(config), AWS_PROFILE="orders", PATH="/usr/bin:/bin") as aws:
        assert aws.call("get_object", BUCKET, log_key(ORDERS)) > 0
        with pytest.raises(ClientError, match="AccessDenied"):
            aws.call("get_object", BUCKET, log_key(ARCHIVE))


@pytest.mark.component(BOTO3)
def test_boto3_asks_the_gateway_itself_for_its_credentials(shared, lake):
    share, schema, table = ORDERS.split(".")
    uri = f"{shared.endpoint}/shares/{share}/schemas/{schema}/tables/{table}/aws-credentials"
    token = f"Bearer {shared.token}"

    with recipient(AWS_CONTAINER_CREDENTIALS_FULL_URI=uri, AWS_CONTAINER_AUTHORIZATION_TOKEN=token) as aws:
        assert aws.call("get_object", BUCKET, log_key(ORDERS), endpoint=lake.endpoint) > 0
        with pytest.raises(ClientError, match="AccessDenied"):
            aws.call("get_object", BUCKET, log_key(ARCHIVE))


def test_the_command_prints_a_credential_that_aws_tools_take(shared):
    printed = run_command("credentials", shared.address(ORDERS))

    assert printed.returncode == 0, printed.stderr
    answer = json.loads(printed.stdout)
    assert answer["Version"] == 1
    assert set(answer) == {"Version", "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}


def test_the_command_says_on_standard_error_what_is_wrong(shared):
    printed = run_command("credentials", shared.address(f"{SHARE}.shop.nothing"))

    assert (printed.returncode, printed.stdout) == (1, "")
    assert "sluice-recipient tables" in printed.stderr
    assert shared.token not in printed.stderr


@contextmanager
def _stand_in(lake: SeaweedFS, directory: Path) -> Iterator[Shared]:
    gateway = CredentialGateway(
        mint=lambda location: lake.assume_role(read_policy(location)),
        tables=LOCATIONS,
        token=secrets.token_urlsafe(32),
        region=lake.region,
        endpoint=lake.endpoint,
    )
    with serving(gateway):
        profile = directory / "reader.share"
        profile.write_text(gateway.profile)
        yield Shared(profile=profile, endpoint=gateway.base_url, token=gateway.token)


def _gateway(lake: SeaweedFS, directory: Path) -> AbstractContextManager[Shared]:
    return sharing_gateway(directory, store=lake.endpoint, role=lake.role_arn, keys=lake.gateway)
