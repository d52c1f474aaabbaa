"""Two tables side by side in one bucket, and the processes in which a recipient reads them."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from tests.e2e.official_client import PYTHON, ClientError, environment, require_environment
from tests.repository import ROOT
from tests.stores.s3 import S3Store

SHARE = "sales"
ORDERS = f"{SHARE}.shop.orders"
# Its directory begins as that of the other does, which a careless prefix would let in.
ARCHIVE = f"{SHARE}.shop.orders_archive"
# Rows are deleted here by a deletion vector: the file still has them.
RETURNS = f"{SHARE}.shop.returns"
BUCKET = "lake"
LOCATIONS = {
    ORDERS: f"s3://{BUCKET}/recipient/orders",
    ARCHIVE: f"s3://{BUCKET}/recipient/orders-archive",
    RETURNS: f"s3://{BUCKET}/recipient/returns",
}
FILES = 6
IDS = {ORDERS: list(range(60)), ARCHIVE: list(range(1000, 1060)), RETURNS: [0, 2, 4]}
SOURCE = ROOT / "recipient" / "src"

_FIELDS = [Field("id", "long"), Field("note", "string")]
# The two alphabets of base 85: Python's own, and the one that Delta uses.
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def build(directory: Path) -> dict[str, Path]:
    """Write the tables to disk."""
    built = {table: directory / table for table in LOCATIONS}
    for table in (ORDERS, ARCHIVE):
        rows = [{"id": number, "note": table} for number in IDS[table]]
        TableBuilder(built[table], _FIELDS).append(rows, files=FILES)
    _build_returns(built[RETURNS])
    return built


def upload(store: S3Store, directory: Path) -> None:
    """Put the tables where they are shared from."""
    for table, built in build(directory).items():
        prefix = key_of(LOCATIONS[table])
        for file in built.rglob("*"):
            if file.is_file():
                store.put(BUCKET, f"{prefix}/{file.relative_to(built)}", file.read_bytes())


def key_of(location: str) -> str:
    return location.removeprefix(f"s3://{BUCKET}/")


def log_key(table: str) -> str:
    """Return the key of an object that every reader of a table reads."""
    return f"{key_of(LOCATIONS[table])}/_delta_log/{0:020d}.json"


def recipient_environment(**more: str) -> dict[str, str]:
    """Return an environment in which the library is found, and no identity that the test did not name."""
    inherited = {name: value for name, value in environment().items() if not name.startswith("AWS_")}
    # No configuration of the user's: it could hold keys.
    nowhere = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    own = {"PYTHONPATH": str(SOURCE), "AWS_EC2_METADATA_DISABLED": "true"}
    return {**inherited, **nowhere, **own, **more}


class RecipientProcess:
    """Calls the methods of ``recipient_reader.Reader`` in a process of the clients' environment."""

    def __init__(self, env: Mapping[str, str]) -> None:
        script = Path(__file__).with_name("recipient_reader.py")
        self._process = subprocess.Popen(
            [PYTHON, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def call(self, name: str, *arguments: object, **options: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"call": name, "arguments": arguments, "options": options}
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def recipient(**env: str) -> Iterator[RecipientProcess]:
    """Run such a process until the block is left."""
    require_environment()
    process = RecipientProcess(recipient_environment(**env))
    try:
        yield process
    finally:
        process.close()


def run_command(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``sluice-recipient`` as a user does."""
    require_environment()
    return subprocess.run(
        [PYTHON, "-m", "sluice_recipient", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=recipient_environment(**env),
    )


def _build_returns(directory: Path) -> None:
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    table = TableBuilder(
        directory, _FIELDS, protocol={"minReaderVersion": 3, "minWriterVersion": 7, **features}
    ).append([{"id": number, "note": RETURNS} for number in range(5)])
    ((path, add),) = table.live.items()
    table.commit(*table.remove(path), {"add": {**add, "deletionVector": _deletion_vector([1, 3])}})


def _deletion_vector(rows: list[int]) -> dict[str, Any]:
    """Return an inline deletion vector of row numbers: one array container of a roaring bitmap."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    content = struct.pack("<iqI", 1681511377, 1, 0) + bitmap
    padded = content + bytes(-len(content) % 4)
    text = base64.b85encode(padded).decode().translate(str.maketrans(_B85, _Z85))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(content), "cardinality": len(rows)}
