"""``sluice demo``: the gateway with a sample share, from nothing."""

from __future__ import annotations

import argparse
import errno
import json
import shlex
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import yaml

from gateway.bootstrap import Running
from gateway.bootstrap.given import Given
from gateway.commands.bearer import format_time, hash_of, new_token, profile_of, write_private
from gateway.commands.serve import begin, run_until_stopped
from gateway.config.load import Loaded, load
from gateway.demo.sample import ensure_sample
from gateway.errors import InvalidArgument, Unavailable

HELP = "try it: serve a sample share on 127.0.0.1, without any configuration"

_HOST: Final = "127.0.0.1"
_PREFIX: Final = "/delta-sharing"
_MAX_PORT: Final = 65535
_TOKEN_LIFE: Final = timedelta(days=365)
_RENEW_BEFORE: Final = timedelta(days=30)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8080, help="where to listen (default: 8080; 0: any free)")
    parser.add_argument(
        "--state",
        metavar="DIR",
        type=Path,
        default=Path(".sluice"),
        help="where the sample tables, the profile and the keys are kept (default: .sluice)",
    )


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    # Before the tables are built: a taken port should not cost a minute.
    with _bound(args.port) as sock:
        base_url = f"http://{_HOST}:{sock.getsockname()[1]}{_PREFIX}"
        state: Path = args.state.absolute()
        profile = state / "sample.share"
        file = _prepare(state, profile, base_url)
        # The demo is what it is: settings of the environment are for `serve`.
        own = {name: value for name, value in env.items() if not name.startswith("SLUICE_")}

        def source() -> Loaded:
            return load(file, own)

        return run_until_stopped(
            begin(source),
            source,
            file,
            on_start=lambda process: print(_greeting(process, profile, base_url), flush=True),
            given=Given(http_sockets=(sock,)),
        )


def _bound(port: int) -> socket.socket:
    if not 0 <= port <= _MAX_PORT:
        raise InvalidArgument(f"--port {port} is not a port: choose one from 1 to {_MAX_PORT}, or 0 for any")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((_HOST, port))
        # Another listener on the same port shows only here.
        sock.listen()
    except OSError as exc:
        sock.close()
        reason = "is taken" if exc.errno == errno.EADDRINUSE else "cannot be listened on"
        raise Unavailable(
            f"port {port} of {_HOST} {reason}; choose another: make run PORT=8090, or sluice demo --port 8090"
        ) from exc
    return sock


def _prepare(state: Path, profile: Path, base_url: str) -> Path:
    """Write what the demo serves below the state directory, and return the configuration file."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    sample = ensure_sample(state / "sample", _show)
    token, expires_at = _token(profile)
    write_private(profile, profile_of(base_url, token, expires_at), replace=True)
    write_private(_header_file(profile), f"Authorization: Bearer {token}\n", replace=True)
    settings = {
        "version": 1,
        "publicUrl": base_url,
        "stateDir": str(state / "state"),
        "metrics": {"listen": _metrics_listen(base_url)},
        "log": {"level": "warning"},
        "shares": sample.to_shares(),
        "storages": [{"name": "sample", "prefix": str(sample.directory), "vendor": "local"}],
        "recipients": [
            {
                "name": "demo",
                "shares": "*",
                "tokens": [{"hash": hash_of(token), "expires": format_time(expires_at)}],
            }
        ],
    }
    file = state / "server.yaml"
    write_private(file, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), replace=True)
    return file


def _header_file(profile: Path) -> Path:
    """Return where curl reads the token from, so that it stands in no command line."""
    return profile.with_suffix(".header")


def _metrics_listen(base_url: str) -> str:
    """Return the port after the first where it is free, as that one is easy to remember, or any."""
    port = (urlsplit(base_url).port or 0) + 1
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except (OSError, OverflowError):
            return f"{_HOST}:0"
    return f"{_HOST}:{port}"


def _token(profile: Path) -> tuple[str, datetime]:
    """Return the token of the last start, so that what was pasted before still works, or a new one."""
    now = datetime.now(UTC)
    try:
        content = json.loads(profile.read_text(encoding="utf-8"))
        token, expires_at = content["bearerToken"], datetime.fromisoformat(content["expirationTime"])
        if isinstance(token, str) and expires_at > now + _RENEW_BEFORE:
            return token, expires_at
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return new_token(), (now + _TOKEN_LIFE).replace(microsecond=0)


def _show(step: str) -> None:
    print(f"setting up: {step}", file=sys.stderr, flush=True)


def _greeting(process: Running, profile: Path, base_url: str) -> str:
    path = str(profile)
    header = shlex.quote(f"@{_header_file(profile)}")
    return f"""\
Sluice serves the sample share at {base_url}

profile: {path}

Read a table with the official client (pip install delta-sharing):

    import delta_sharing
    table = {path + "#sample.sales.orders"!r}
    print(delta_sharing.load_as_pandas(table))

List the tables:

    curl -H {header} {base_url}/shares/sample/all-tables

API docs  {base_url}/docs
metrics   http://{process.metrics_address}/metrics
health    http://{process.metrics_address}/healthz and /readyz

Ctrl-C stops it."""
