"""Makes what the compose file needs and no repository may hold: keys, certificates, tokens and sample tables.

    .venv/bin/python -m deploy.compose.prepare          where Sluice is installed, as by `make run`, or
    docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD/deploy:/srv/deploy" --workdir /srv \\
        --entrypoint python sluice:0.1.0 -m deploy.compose.prepare

All of it lies in the folder ``generated``, for whoever runs this alone. ``--force`` makes it anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.compose.authority import Authority
from deploy.compose.store import POLICIES, WRITER, identities, new_keys, roles
from gateway.config.schema import ServiceName
from gateway.demo.s3_sample import S3_TABLES
from gateway.demo.sample import ensure_sample

FOLDER: Final = Path(__file__).resolve().parent
RECIPIENT: Final = "acme"
# Who containers run as when this is run by root: the image's own user.
UNPRIVILEGED: Final = (10001, 10001)
# What the cache does in Redis (docs/cache.md), and a user that can only be asked whether it is there.
REDIS_RIGHTS: Final = (
    "~sluice:* resetchannels -@all +get +set +del +eval +zadd +zrange +zrem +zremrangebyscore +pexpire +pttl "
    "+time +cluster|slots +command +ping"
)
WRITTEN: Final = (
    *("state/edge-1", "state/edge-2", "state/catalog"),
    *("data/seaweedfs", "data/prometheus", "data/grafana/dashboards"),
)


def main(given: Sequence[str] | None = None) -> int:
    arguments = _parse_arguments(given)
    place: Path = arguments.place
    if place.exists() and not arguments.force:
        sys.stderr.write(
            f"prepare: {place} exists; --force makes everything anew and forgets what it holds\n"
        )
        return 1
    # Whole or not at all: half of the keys would be taken for all of them.
    building = Path(tempfile.mkdtemp(dir=place.parent, prefix=".generated-"))
    try:
        user = _fill(building)
        shutil.rmtree(place, ignore_errors=True)
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    (place.parent / ".env").write_text(f"SLUICE_USER={user}\n")
    sys.stdout.write(
        f"prepared {place}\n"
        "  next:       docker compose --file deploy/compose/compose.yaml up --detach --wait\n"
        f"  recipients: {place / f'{RECIPIENT}.share'}, with the authority {place / 'tls' / 'ca.crt'}\n"
        f"  Grafana:    http://localhost:3000, admin, the password is in {place / 'grafana' / 'password'}\n"
    )
    return 0


def _parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Make the keys, certificates and sample of the compose file."
    )
    parser.add_argument("--place", type=Path, default=FOLDER / "generated", help=argparse.SUPPRESS)
    parser.add_argument("--force", action="store_true", help="replace what was made before")
    return parser.parse_args(given)


def _fill(place: Path) -> str:
    """Write everything into a folder, and return who containers are to run as."""
    _write_keys(place / "keys")
    _write_certificates(place / "tls", place / "envoy")
    _write_store(place / "store")
    _write_redis(place / "redis")
    _write(place / "grafana" / "password", secrets.token_urlsafe(18))
    _write_configuration(place)
    _write_sample(place / "sample")
    for name in WRITTEN:
        (place / name).mkdir(parents=True)
    return _hand_over(place)


def _write_keys(folder: Path) -> None:
    printed = _sluice("keys", "new", "--split")
    for section in yaml.safe_load_all(printed):
        # The same name holds the same key in every section.
        for name, value in section["keys"]["current"].items():
            _write(folder / name, value)


def _write_certificates(inner: Path, front: Path) -> None:
    authority = Authority()
    _write(inner / "ca.crt", authority.certificate)
    for service in ServiceName:
        issued = authority.issue(service.value, [service.value])
        _write(inner / f"{service.value}.crt", issued.certificate)
        _write(inner / f"{service.value}.key", issued.key)
    issued = authority.issue("gateway", ["localhost", "envoy", "127.0.0.1", "::1"])
    _write(front / "tls.crt", issued.certificate)
    _write(front / "tls.key", issued.key)


def _write_store(folder: Path) -> None:
    keys = {name: new_keys(name) for name in (*POLICIES, WRITER)}
    for name, own in keys.items():
        _write(folder / f"{name}.id", own.access_key_id)
        _write(folder / f"{name}.secret", own.secret_access_key)
    _write_json(folder / "s3.json", identities(keys))
    _write_json(folder / "iam.json", roles())
    # Of an authority of its own: with a certificate of the processes' own, each of them could rule the store.
    authority = Authority()
    issued = authority.issue("store", ["localhost"])
    _write(folder / "grpc-ca.crt", authority.certificate)
    _write(folder / "grpc.crt", issued.certificate)
    _write(folder / "grpc.key", issued.key)


def _write_redis(folder: Path) -> None:
    password = secrets.token_urlsafe(30)
    digest = hashlib.sha256(password.encode()).hexdigest()
    users = [
        "user default off",
        f"user sluice on #{digest} resetkeys {REDIS_RIGHTS}",
        "user probe on >probe resetkeys resetchannels -@all +ping",
    ]
    _write(folder / "password", password)
    _write(folder / "users.acl", "\n".join(users) + "\n")


def _write_configuration(place: Path) -> None:
    """Make the recipient's token, and put its hash beside what the repository has."""
    shared = (FOLDER / "server.yaml").read_text()
    endpoint = yaml.safe_load(shared)["publicUrl"]
    profile = place / f"{RECIPIENT}.share"
    _sluice("token", "new", RECIPIENT, "--endpoint", endpoint, "--profile", str(profile), "--expires", "90d")
    token = json.loads(profile.read_text())
    entry = {
        "hash": f"sha256:{hashlib.sha256(token['bearerToken'].encode()).hexdigest()}",
        "expires": token["expirationTime"],
    }
    recipient = {"name": RECIPIENT, "shares": ["sample"], "tokens": [entry]}
    _write(
        place / "server.yaml", shared + "\n" + yaml.safe_dump({"recipients": [recipient]}, sort_keys=False)
    )


def _write_sample(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        sources = list(dict.fromkeys(table.source for table in S3_TABLES))
        catalog = ensure_sample(Path(scratch, "sample"), lambda _: None, tables=sources)
        for table in S3_TABLES:
            shutil.copytree(catalog.location_of(table.source), folder / table.key)


def _hand_over(place: Path) -> str:
    uid, gid = UNPRIVILEGED if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    for path in _everything(place):
        os.chown(path, uid, gid)
        path.chmod(0o700 if path.is_dir() else 0o600)
    return f"{uid}:{gid}"


def _everything(place: Path) -> Iterable[Path]:
    return (place, *place.rglob("*"))


def _sluice(*arguments: str) -> str:
    command = [sys.executable, "-m", "gateway", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def _write_json(file: Path, content: dict[str, Any]) -> None:
    _write(file, json.dumps(content, indent=1))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Nobody else's from its first byte on.
    file.touch(mode=0o600)
    file.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
