"""URLs signed a second and core: our signers against the SDKs', obstore's, and what OpenSSL alone would take.

Each signs the same names, with the same keys, at the same time. Processor time, of all threads; rounds are
interleaved, and the best of each counts: others' work only ever adds to it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import boto3
import obstore
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.cloud import storage as google_storage
from google.oauth2 import service_account
from obstore.store import S3Store

from bench.machine import describe_machine
from gateway.adapters.vendors import find_vendor
from gateway.domain.credential import Credential
from gateway.domain.file_path import Paths, encode_path
from gateway.domain.location import Location, parse_location
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.ports import Signer, StorageSettings

FILES = 1000
# RSA takes a hundred times as long.
FEW = 100
ROUNDS = 7
# Of each, in each round.
ENOUGH_SECONDS = 0.05
RESULTS = Path(__file__).parent / "results"
KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
# As long as those of STS are.
TOKEN = base64.b64encode(bytes(range(256)) * 3).decode()
ACCOUNT_KEY = base64.b64encode(b"k" * 64).decode()
NAMES = [
    f"date=2021-04-{n % 28 + 1:02d}/part-{n:05d}-8b0086f2-7e5b-4d4c-9d1f-2e6a4d3b1c0f.c000.snappy.parquet"
    for n in range(FILES)
]
PATHS = [encode_path(name) for name in NAMES]
LIFE = timedelta(hours=1)
OWN, OPENSSL = "own", "OpenSSL alone"

Work = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Those who sign for one kind of store."""

    title: str
    works: Mapping[str, Work]
    files: int = FILES
    # How many times less than a peer we want to take.
    aims: Mapping[str, float] = field(default_factory=dict)


class Once:
    """Gives the session that is minted for a window to all who ask for it."""

    def __init__(self) -> None:
        self._minted: dict[Window, Credential] = {}

    async def obtain(self, window: Window, mint: Callable[[], Awaitable[Credential]]) -> Credential:
        if window not in self._minted:
            self._minted[window] = await mint()
        return self._minted[window]


def main() -> None:
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    taken = asyncio.run(_run())
    _report(taken)


async def _run() -> dict[str, tuple[Contest, dict[str, float]]]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        contests = [
            await _s3(stack, "S3, keys", ""),
            await _s3(stack, "S3, a session of STS", TOKEN),
            await _azure(stack),
            await _gcs_hmac(stack),
            await _gcs_rsa(stack, folder),
        ]
        floor = openssl_floor()
        return {contest.title: (contest, await _measure(contest, floor)) for contest in contests}


async def _measure(contest: Contest, floor: float | None) -> dict[str, float]:
    """Return the microseconds a URL of each, with what those that only hash cannot go below."""
    times: dict[str, list[float]] = {name: [] for name in contest.works}
    for _ in range(ROUNDS):
        for name, work in contest.works.items():
            times[name].append(await _taken(work, contest.files) / contest.files * 1e6)
    best = {name: min(taken) for name, taken in times.items()}
    return best | ({OPENSSL: floor} if floor is not None and OPENSSL in contest.aims else {})


async def _taken(work: Work, files: int) -> float:
    """Return the processor time of one batch among many: a quick one alone is mostly caches that are cold."""
    began, times = time.process_time(), 0
    while (taken := time.process_time() - began) < ENOUGH_SECONDS:
        await work(files)
        times += 1
    return taken / times


async def _s3(stack: AsyncExitStack, title: str, token: str) -> Contest:
    keys: dict[str, Any] = {
        "kind": "keys",
        "accessKeyId": KEY_ID,
        "secretAccessKey": {"value": SECRET},
    }
    if token:
        keys["sessionToken"] = {"value": token}
    options = {"region": "eu-central-1", "identity": keys}
    own = await _own(stack, "aws", "s3://lake", "s3://lake/sales/orders", options)
    session = boto3.session.Session(KEY_ID, SECRET, token or None, region_name="eu-central-1")
    client = session.client("s3", endpoint_url="https://s3.eu-central-1.amazonaws.com")
    given: Any = {"access_key_id": KEY_ID, "secret_access_key": SECRET} | ({"token": token} if token else {})
    store = S3Store("lake", region="eu-central-1", config=given)

    async def by_boto3(count: int) -> object:
        sign = client.generate_presigned_url
        return [
            sign("get_object", Params={"Bucket": "lake", "Key": f"sales/orders/{name}"}, ExpiresIn=3600)
            for name in NAMES[:count]
        ]

    async def by_obstore(count: int) -> object:
        return obstore.sign(store, "GET", [f"sales/orders/{name}" for name in NAMES[:count]], LIFE)

    works = {OWN: own, "boto3": by_boto3, "obstore.sign": by_obstore}
    return Contest(title=title, works=works, aims={"boto3": 60, "obstore.sign": 5, OPENSSL: 0.25})


def openssl_floor() -> float | None:
    """Return the microseconds that OpenSSL takes to hash a request and to sign a text, as it says itself."""
    program = shutil.which("openssl")
    if program is None:
        return None
    hashed, signed = (
        min(_openssl_us(program, size, *asked) for _ in range(ROUNDS // 2))
        for size, asked in ((384, ("-evp", "sha256")), (128, ("-hmac", "sha256")))
    )
    return hashed + signed


def _openssl_us(program: str, size: int, *asked: str) -> float:
    command = [program, "speed", "-mr", "-seconds", "1", "-bytes", str(size), *asked]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    bytes_a_second = next(float(line.split(":")[-1]) for line in said.splitlines() if line.startswith("+F"))
    return size / bytes_a_second * 1e6


async def _azure(stack: AsyncExitStack) -> Contest:
    location = "abfss://lake@account.dfs.core.windows.net"
    options = {"identity": {"kind": "accountKey", "accountKey": {"value": ACCOUNT_KEY}}}
    own = await _own(stack, "azure", location, f"{location}/sales/orders", options)
    start = datetime.now(UTC).replace(microsecond=0)

    async def by_sdk(count: int) -> object:
        return [
            generate_blob_sas(
                "account",
                "lake",
                f"sales/orders/{name}",
                account_key=ACCOUNT_KEY,
                permission=BlobSasPermissions(read=True),
                start=start,
                expiry=start + LIFE,
            )
            for name in NAMES[:count]
        ]

    return Contest(title="Azure, account key", works={OWN: own, "azure-storage-blob": by_sdk})


async def _gcs_hmac(stack: AsyncExitStack) -> Contest:
    signing = {"kind": "hmac", "accessId": "GOOG1EXAMPLE", "secret": {"value": SECRET}}
    options = {"identity": {"kind": "chain"}, "signing": signing}
    own = await _own(stack, "gcp", "gs://lake", "gs://lake/sales/orders", options)
    return Contest(title="Google Cloud Storage, HMAC key", works={OWN: own}, aims={OPENSSL: 0.25})


async def _gcs_rsa(stack: AsyncExitStack, folder: Path) -> Contest:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key_file = folder / "key.json"
    info = _service_key(private)
    key_file.write_text(json.dumps(info))
    options = {"identity": {"kind": "serviceAccount", "keyFile": str(key_file)}}
    own = await _own(stack, "gcp", "gs://lake", "gs://lake/sales/orders", options)
    from_info: Any = service_account.Credentials.from_service_account_info
    client = google_storage.Client(project="p", credentials=from_info(info))
    bucket = client.bucket("lake")

    async def by_sdk(count: int) -> object:
        return [
            bucket.blob(f"sales/orders/{name}").generate_signed_url(version="v4", expiration=LIFE)
            for name in NAMES[:count]
        ]

    return Contest(
        title="Google Cloud Storage, RSA key", works={OWN: own, "google-cloud-storage": by_sdk}, files=FEW
    )


def _service_key(private: rsa.RSAPrivateKey) -> dict[str, str]:
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "signer@p.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    }


async def _own(
    stack: AsyncExitStack, vendor: str, prefix: str, table: str, options: Mapping[str, object]
) -> Work:
    settings = StorageSettings(
        name="lake", prefix=parse_location(prefix), options=options, public_url="", sessions=Once()
    )
    storage = await stack.enter_async_context(find_vendor(vendor).open(settings))
    assert storage.signer is not None
    return _signing(storage.signer, parse_location(table))


def _signing(signer: Signer, table: Location) -> Work:
    window = window_at(datetime.now(UTC), LIFE, URL_PARTS, b"lake")

    async def work(count: int) -> object:
        paths = Paths.of(PATHS[:count])
        signed = await signer.sign(table, paths, window)
        assert len(signed) == count
        return signed

    assert unquote(PATHS[0]) == NAMES[0]
    return work


def _report(taken: Mapping[str, tuple[Contest, Mapping[str, float]]]) -> None:
    lines = [
        "# Signing URLs",
        "",
        f"{describe_machine()}; pages of {FILES:,} names ({FEW} for RSA), best of {ROUNDS} "
        f"interleaved rounds of {ENOUGH_SECONDS:g} s each, processor time of all threads.",
    ]
    for title, (contest, best) in taken.items():
        lines += ["", f"## {title}", "", *_rows(contest, best)]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "presigning.md").write_text(text)
    figures = {title: best for title, (_, best) in taken.items()}
    (RESULTS / "presigning.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(text)


def _rows(contest: Contest, best: Mapping[str, float]) -> list[str]:
    rows = ["| | us a URL | URLs a second | to own | aim |", "| --- | ---: | ---: | ---: | --- |"]
    for name, us in best.items():
        aim = contest.aims.get(name)
        words = "" if aim is None else f"at least {aim:g}" if aim >= 1 else f"at least 1/{1 / aim:g}"
        rows.append(f"| {name} | {us:.2f} | {1e6 / us:,.0f} | {us / best[OWN]:.2f} | {words} |")
    return rows


if __name__ == "__main__":
    main()
