"""Platform services call the gRPC services: principals of their own, by a certificate or a JWT."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from grpc import aio

from gateway import errors
from gateway.commands.bearer import hash_of
from gateway.config.schema import TlsConfig
from gateway.rpc.dial import dial
from gateway.rpc.status import to_error
from gateway.v1 import catalog_pb2, presign_pb2, snapshot_pb2
from gateway.v1.catalog_pb2_grpc import CatalogStub
from gateway.v1.presign_pb2_grpc import PresignStub
from gateway.v1.snapshot_pb2_grpc import SnapshotStub
from tests.components import SPLIT
from tests.deployments import Deployment, split
from tests.http import request
from tests.integration.conftest import TOKEN
from tests.integration.platform_services import KEY, PUBLIC_PEM

pytestmark = pytest.mark.component(SPLIT)

OLD_KEY = Ed25519PrivateKey.generate()
OLD_PEM = OLD_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, settings) -> Iterator[Deployment]:
    principals = [
        {"name": "billing", "certificate": "spiffe://sluice.test/billing", "shares": ["sample"]},
        {
            "name": "broker",
            "certificate": "spiffe://sluice.test/broker",
            "permissions": ["actForRecipients"],
        },
        {"name": "reports", "publicKeys": [OLD_PEM, PUBLIC_PEM], "shares": ["sample"]},
        {
            "name": "both",
            "certificate": "spiffe://sluice.test/both",
            "publicKeys": [PUBLIC_PEM],
            "shares": ["sample"],
        },
    ]
    with split(tmp_path_factory.mktemp("platform"), settings | {"principals": principals}) as running:
        yield running


@dataclass
class Caller:
    """A platform service with its certificate."""

    deployment: Deployment
    tls: TlsConfig
    stack: AsyncExitStack

    def channel(self, service: str) -> aio.Channel:
        file = self.deployment.processes[service].config_file
        channel = dial(yaml.safe_load(file.read_text())["services"]["listen"], self.tls)
        self.stack.push_async_callback(channel.close)
        return channel

    async def resolve(self, caller: Any = None, metadata: Any = (), audiences: Any = (1, 2)) -> Any:
        request = catalog_pb2.ResolveRequest(
            caller=caller, share="sample", schema="sales", table="orders", audiences=audiences
        )
        return await CatalogStub(self.channel("catalog")).Resolve(request, metadata=metadata, timeout=60)

    async def refused(self, **arguments: Any) -> errors.GatewayError:
        with pytest.raises(aio.AioRpcError) as caught:
            await self.resolve(**arguments)
        return to_error(caught.value)


@pytest.fixture
async def as_service(deployment) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        yield lambda name: Caller(deployment, deployment.certificate(name), stack)


async def test_a_service_reads_a_table_as_itself(as_service, sample):
    billing = as_service("billing")

    resolved = await billing.resolve()
    snapshot_grant, presign_grant = resolved.grants
    query = SnapshotStub(billing.channel("snapshot")).Query(snapshot_pb2.QueryRequest(grant=snapshot_grant))
    pages = [message.page async for message in query if message.HasField("page")]
    paths = pages[0].groups[0].paths
    signed = await PresignStub(billing.channel("presign")).Sign(
        presign_pb2.SignRequest(grant=presign_grant, paths=paths)
    )

    assert resolved.principal == "billing"
    path, signature = paths.split(b"\n")[0].decode(), signed.signatures.split(b"\n")[0].decode()
    assert request(f"{signed.origin}{path}?{signed.query}{signature}").body.startswith(b"PAR1")


async def test_a_grant_for_one_service_is_refused_by_another(as_service):
    billing = as_service("billing")
    snapshot_grant, _ = (await billing.resolve()).grants

    with pytest.raises(aio.AioRpcError) as caught:
        await PresignStub(billing.channel("presign")).Sign(
            presign_pb2.SignRequest(grant=snapshot_grant, paths=b"a")
        )

    assert isinstance(to_error(caught.value), errors.Unauthenticated)


async def test_acting_for_a_recipient_takes_a_permission_of_its_own(as_service):
    reader = catalog_pb2.Caller(recipient="reader")

    assert (await as_service("broker").resolve(caller=reader)).principal == "reader"
    assert isinstance(await as_service("billing").refused(caller=reader), errors.PermissionDenied)


async def test_only_an_edge_may_present_tokens(as_service):
    presented = catalog_pb2.Caller(token_sha256=bytes.fromhex(hash_of(TOKEN).removeprefix("sha256:")))

    assert (await as_service("edge").resolve(caller=presented)).principal == "reader"
    assert isinstance(await as_service("billing").refused(caller=presented), errors.PermissionDenied)


async def test_a_certificate_that_names_no_principal_gets_nothing(as_service):
    assert isinstance(await as_service("stranger").refused(), errors.Unauthenticated)


def bearing(
    name: str, audience: str = "gateway.v1.Catalog", key: Ed25519PrivateKey = KEY
) -> tuple[tuple[str, str], ...]:
    """Return what a service sends along that signs a JWT."""
    now = datetime.now(UTC)
    claims = {"sub": name, "aud": audience, "iat": now, "exp": now + timedelta(minutes=5)}
    return (("authorization", f"Bearer {jwt.encode(claims, key, algorithm='EdDSA')}"),)


async def test_a_service_may_prove_itself_by_a_jwt_of_any_of_its_keys(as_service):
    stranger = as_service("stranger")

    for key in (OLD_KEY, KEY):
        assert (await stranger.resolve(metadata=bearing("reports", key=key))).principal == "reports"
    refusal = await stranger.refused(metadata=bearing("reports", key=Ed25519PrivateKey.generate()))
    assert isinstance(refusal, errors.Unauthenticated)


async def test_a_jwt_that_was_sent_to_one_service_is_refused_by_the_others(as_service):
    # Presign, which was sent the token and has a certificate of its own, goes to the catalog with both.
    presign = as_service("presign")
    for_presign = bearing("reports", "gateway.v1.Presign")
    assert isinstance(await presign.refused(metadata=for_presign), errors.Unauthenticated)

    _, grant = (await presign.resolve(metadata=bearing("reports"))).grants
    stub = PresignStub(presign.channel("presign"))
    asked = presign_pb2.SignRequest(grant=grant, paths=b"a.parquet")
    await stub.Sign(asked, metadata=for_presign)
    with pytest.raises(aio.AioRpcError) as caught:
        await stub.Sign(asked, metadata=bearing("reports"))
    assert isinstance(to_error(caught.value), errors.Unauthenticated)


async def test_a_service_that_is_known_by_both_is_known_by_neither_alone(as_service):
    assert (await as_service("both").resolve(metadata=bearing("both"))).principal == "both"
    assert isinstance(await as_service("both").refused(), errors.Unauthenticated)
    assert isinstance(await as_service("stranger").refused(metadata=bearing("both")), errors.Unauthenticated)


async def test_what_a_service_was_given_is_in_the_catalogs_audit_log(as_service, deployment):
    await as_service("broker").resolve(
        caller=catalog_pb2.Caller(recipient="reader"), metadata=(("x-request-id", "acting-1"),)
    )

    segments = (deployment.catalog.config_file.parent / "audit").glob("*.jsonl*")
    events = [json.loads(line) for segment in segments for line in segment.read_text().splitlines()]
    (event,) = [event for event in events if event["request_id"] == "acting-1"]
    assert (event["principal"], event["actor"], event["table"]) == ("reader", "broker", "orders")
