"""Microseconds per local signature: bare HMACs, the signer, and a whole Sign call through the service.

The peer is a loop of ``hmac.digest`` over the same bytes. Rounds are interleaved: a busy moment of the
machine falls on all of them.
"""

from __future__ import annotations

import asyncio
import hmac
import platform
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from grpc import aio

from gateway.domain.file_path import Paths, encode_path
from gateway.domain.grant import Audience, Grant
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.domain.window import URL_PARTS, window_at
from gateway.ports import Storage, StorageSettings
from gateway.rpc.grant import GrantVerifier
from gateway.services.catalog.grant_signer import GrantSigner
from gateway.services.presign.servicer import PresignServicer
from gateway.v1.presign_pb2 import SignRequest
from tests.fakes.storages import FakeStorages
from vendors.local.signer import LocalSigner

FILES = 1000
ROUNDS = 30
RESULTS = Path(__file__).parent / "results"
NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
LIFE = timedelta(hours=1)
KEY = Key(id="k1", secret=b"s" * 32)
TABLE = parse_location("/data/lake/sales/orders")
PATHS = [
    encode_path(
        f"date=2021-04-{n % 28 + 1:02d}/part-{n:05d}-8b0086f2-7e5b-4d4c-9d1f-2e6a4d3b1c0f.c000.snappy.parquet"
    )
    for n in range(FILES)
]

Work = Callable[[], Awaitable[object]]


def main() -> None:
    works = {"hmac.digest": _bare(), "local signer": _signer(), "Presign.Sign": _service()}
    best, version = asyncio.run(_measure(works)), platform.python_version()
    lines = [
        "# Local signatures",
        "",
        f"A page of {FILES:,} paths, best of {ROUNDS} interleaved rounds, Python {version}.",
        "",
        "| | us per path | to hmac.digest |",
        "|---|---|---|",
        *(f"| {name} | {us:.2f} | {us / best['hmac.digest']:.2f} |" for name, us in best.items()),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "local_signing.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


async def _measure(works: Mapping[str, Work]) -> dict[str, float]:
    """Return the microseconds per path of each, in its best round: others' work only ever adds to it."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            started = time.perf_counter()
            await work()
            times[name].append((time.perf_counter() - started) / FILES * 1e6)
    return {name: min(taken) for name, taken in times.items()}


def _bare() -> Work:
    head = b"r\n2\n1748782800\ndisk\nsales/orders/"
    messages = [head + path.encode() for path in PATHS]

    async def work() -> object:
        return [hmac.digest(KEY.secret, message, "sha256") for message in messages]

    return work


def _local_signer() -> LocalSigner:
    keys = Keys(current=KEY)
    settings = StorageSettings(
        name="disk", prefix=parse_location("/data/lake"), public_url="https://share.example", url_keys=keys
    )
    return LocalSigner(settings, keys)


def _signer() -> Work:
    signer, window = _local_signer(), window_at(NOON, LIFE, URL_PARTS, b"orders")

    async def work() -> object:
        return await signer.sign(TABLE, Paths.of(PATHS), window)

    return work


def _service() -> Work:
    private_key = Ed25519PrivateKey.generate()
    storage = Storage(name="disk", prefix=parse_location("/data/lake"), signer=_local_signer())
    servicer = PresignServicer(
        storages=FakeStorages(storage),
        verifier=GrantVerifier({"k1": private_key.public_key()}, Audience.PRESIGN, lambda: NOON),
        clock=lambda: NOON,
        life=LIFE,
    )
    request = SignRequest(
        grant=GrantSigner("k1", private_key, lambda: NOON).sign(_grant()), paths="\n".join(PATHS).encode()
    )
    context = cast("aio.ServicerContext[object, object]", None)

    async def work() -> object:
        response = await servicer.Sign(request, context)
        assert response.signatures.count(b"\n") == FILES - 1
        return response

    return work


def _grant() -> Grant:
    return Grant(
        principal="bench",
        audience=Audience.PRESIGN,
        table=TableName("share", "sales", "orders"),
        table_id="1",
        location=TABLE,
        access_modes=(AccessMode.URL,),
        history_shared=False,
        generation="1",
        expires_at=NOON + timedelta(seconds=60),
    )


if __name__ == "__main__":
    main()
