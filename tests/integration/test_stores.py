"""The stores that other tests rely on do deny."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient
from botocore.exceptions import ClientError

from tests.components import AZURITE, FAKE_GCS_SERVER, MINIO, SEAWEEDFS
from tests.ports import free_ports
from tests.stores.process import EndedEarly, listens, retried, running
from tests.stores.s3 import keys_of
from tests.waiting import eventually

READ_A = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::lake/stores/a/*"]},
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": ["arn:aws:s3:::lake"],
            "Condition": {"StringLike": {"s3:prefix": ["stores/a/*"]}},
        },
    ],
}


@pytest.fixture(scope="module")
def lake(seaweedfs):
    fill(seaweedfs)
    return seaweedfs


def fill(store):
    for key in ("stores/a/p", "stores/a/_delta_log/0.json", "stores/ab/p", "stores/b/p"):
        store.put("lake", key)


def denied(call, *codes, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert caught.value.response["Error"]["Code"] in (codes or ("AccessDenied",))


@pytest.fixture(
    params=[
        pytest.param("seaweedfs", marks=pytest.mark.component(SEAWEEDFS)),
        pytest.param("minio", marks=[pytest.mark.component(MINIO), pytest.mark.system]),
    ]
)
def store(request):
    store = request.getfixturevalue(request.param)
    fill(store)
    return store


def test_an_s3_store_opens_what_a_session_policy_names_and_nothing_else(store):
    s3 = store.client(keys_of(store.assume_role(READ_A)))
    assert s3.get_object(Bucket="lake", Key="stores/a/p")["Body"].read() == b"content"
    assert s3.list_objects_v2(Bucket="lake", Prefix="stores/a/")["KeyCount"] == 2
    for key in ("stores/ab/p", "stores/b/p"):
        denied(s3.get_object, Bucket="lake", Key=key)
    for prefix in ("stores/", "stores/a", "stores/ab/", ""):
        denied(s3.list_objects_v2, Bucket="lake", Prefix=prefix)
    denied(s3.put_object, Bucket="lake", Key="stores/a/new", Body=b"")
    denied(s3.delete_object, Bucket="lake", Key="stores/a/p")


@pytest.mark.component(SEAWEEDFS)
def test_seaweedfs_lets_the_gateway_itself_read_logs_only(lake):
    s3 = lake.client(lake.gateway)
    assert s3.get_object(Bucket="lake", Key="stores/a/_delta_log/0.json")["Body"].read() == b"content"
    assert s3.list_objects_v2(Bucket="lake", Prefix="stores/a/_delta_log/")["KeyCount"] == 1
    denied(s3.get_object, Bucket="lake", Key="stores/a/p")
    denied(s3.list_objects_v2, Bucket="lake", Prefix="stores/a/")
    denied(s3.put_object, Bucket="lake", Key="stores/a/_delta_log/1.json", Body=b"")


@pytest.mark.component(SEAWEEDFS)
def test_seaweedfs_gives_the_role_to_the_gateway_alone(lake):
    request = {"RoleArn": lake.role_arn, "RoleSessionName": "test", "Policy": json.dumps(READ_A)}
    for keys in (lake.stranger, lake.admin):
        denied(lake.client(keys, "sts").assume_role, **request)
    denied(lake.client(lake.gateway, "sts").assume_role, **(request | {"RoleArn": f"{lake.role_arn}2"}))


@pytest.mark.component(SEAWEEDFS)
def test_seaweedfs_keeps_the_role_out_of_other_buckets(lake):
    lake.make_bucket("private")
    lake.make_bucket("lake-other")
    for bucket in ("private", "lake-other"):
        lake.put(bucket, "x")
    s3 = lake.client(keys_of(lake.assume_role()))
    assert s3.get_object(Bucket="lake-other", Key="x")["Body"].read() == b"content"
    denied(s3.get_object, Bucket="private", Key="x")


@pytest.mark.system
@pytest.mark.component(AZURITE)
def test_azurite_lets_in_who_has_the_key_of_the_account(azurite):
    key = base64.b64encode(azurite.key).decode()
    with BlobServiceClient(azurite.endpoint, credential=key) as service:
        container = service.create_container("stores")
        container.upload_blob("a", b"content")
        assert container.download_blob("a").readall() == b"content"
    forged = base64.b64encode(b"another").decode()
    with (
        BlobServiceClient(azurite.endpoint, credential=forged, retry_total=0) as service,
        pytest.raises(HttpResponseError) as caught,
    ):
        service.get_account_information()
    assert caught.value.status_code == 403


@pytest.mark.system
@pytest.mark.component(FAKE_GCS_SERVER)
def test_fake_gcs_server_stores(fake_gcs):
    fake_gcs.make_bucket("stores")
    fake_gcs.put("stores", "a b/c?d")
    with urllib.request.urlopen(f"{fake_gcs.endpoint}/storage/v1/b/stores/o") as response:
        assert [item["name"] for item in json.load(response)["items"]] == ["a b/c?d"]


KILLED = """
import sys, time
from pathlib import Path
from tests.stores.process import running
with running(["sleep", "600"], log_file=Path(sys.argv[1]), ready=lambda: True) as server:
    print(server.pid, flush=True)
    time.sleep(600)
"""


def test_a_server_dies_with_a_test_run_that_is_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert is_alive(pid)
        run.kill()
    eventually(lambda: not is_alive(pid))


def is_alive(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip() not in ("", "Z", "Z+", "Zs")


def test_what_a_server_put_into_a_group_of_its_own_ends_with_it(tmp_path):
    log_file = tmp_path / "log"
    # As an init does.
    command = ["bash", "-c", "set -m; sleep 300 & echo $!; wait"]

    with running(command, log_file=log_file, ready=lambda: bool(log_file.read_text().strip())):
        child = Path("/proc", log_file.read_text().strip(), "stat")
        assert child.exists()

    eventually(lambda: not _is_alive(child))


def _is_alive(stat: Path) -> bool:
    try:
        # A process that has ended may not be buried yet.
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_that_ends_at_once_is_started_again_and_then_given_up(tmp_path):
    starts = []

    def start():
        starts.append(1)
        return running(["sh", "-c", "echo no luck; exit 3"], log_file=tmp_path / "log", ready=lambda: False)

    with pytest.raises(EndedEarly, match="no luck"), retried(start):
        pass
    assert len(starts) == 3


def test_a_server_is_gone_when_the_block_is_left(tmp_path):
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    with running(command, log_file=tmp_path / "log", ready=lambda: listens(port)) as server:
        assert server.is_running()
    assert not server.is_running()
    assert not listens(port)
