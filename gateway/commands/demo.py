"""``sluice demo``: the gateway with a sample share, from nothing."""

from __future__ import annotations

import argparse
import errno
import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from gateway.bootstrap import Running
from gateway.bootstrap.given import Given
from gateway.commands.bearer import format_time, hash_of, new_token, profile_of, write_private
from gateway.commands.greeting import Greeting, header_file
from gateway.commands.serve import begin, run_until_stopped
from gateway.config.load import Loaded, load
from gateway.demo import s3_sample
from gateway.demo.pipeline_sample import add_pipeline
from gateway.demo.sample import SampleCatalog, ensure_sample
from gateway.demo.state_lock import sole_user
from gateway.errors import InvalidArgument, Unavailable

_HOST: Final = "127.0.0.1"
_PREFIX: Final = "/delta-sharing"
_MAX_PORT: Final = 65535
_TOKEN_LIFE: Final = timedelta(days=365)
_RENEW_BEFORE: Final = timedelta(days=30)


def configure(parser: argparse.ArgumentParser) -> None:
    # As text, so that what is no number is refused in the same words as what is no port.
    parser.add_argument("--port", default="8080", help="where to listen (default: 8080; 0: any free)")
    parser.add_argument(
        "--state",
        metavar="DIR",
        type=Path,
        default=Path(".sluice"),
        help="where the sample tables, the profile and the keys are kept (default: .sluice)",
    )
    parser.add_argument(
        "--no-s3", action="store_true", help="leave out the tables on an S3 store beside it, and the store"
    )
    parser.add_argument(
        "--pipeline",
        action="store_true",
        help="also share a view and have usage counted, for a worker to try the pipeline with (needs Java)",
    )


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    port = _port(args.port)
    state: Path = args.state
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The port before the tables are built: a taken one should not cost a minute.
    with sole_user(state), _bound(port) as sock:
        return _serve(sock, state.absolute(), env, args)


def _serve(sock: socket.socket, state: Path, env: Mapping[str, str], args: argparse.Namespace) -> int:
    base_url = f"http://{_HOST}:{sock.getsockname()[1]}{_PREFIX}"
    with _sample(state, with_s3=not args.no_s3) as (sample, s3_storage):
        profile = state / "sample.share"
        shared = what_is_shared(sample, s3_storage)
        file = _prepare(state, profile, base_url, shared, with_pipeline=args.pipeline)
        # The demo is what it is: settings of the environment are for `serve`.
        own = {name: value for name, value in env.items() if not name.startswith("SLUICE_")}

        def source() -> Loaded:
            return load(file, own)

        def greet(process: Running) -> None:
            greeting = Greeting(base_url=base_url, profile=profile, metrics=process.metrics_address)
            text = greeting.to_text(with_s3=s3_storage is not None, with_pipeline=args.pipeline)
            print(text, flush=True)

        return run_until_stopped(
            begin(source), source, file, on_start=greet, given=Given(http_sockets=(sock,))
        )


@contextmanager
def _sample(state: Path, *, with_s3: bool) -> Iterator[tuple[SampleCatalog, dict[str, Any] | None]]:
    """Give the sample tables, and the storage entry of those on S3 while that runs."""

    def build() -> SampleCatalog:
        return ensure_sample(state / "sample", _show)

    start = _s3_start() if with_s3 else None
    if start is None:
        yield build(), None
        return
    with start(state / "s3", build, _show) as found:
        yield found


def _s3_start() -> Callable[..., AbstractContextManager[tuple[SampleCatalog, dict[str, Any] | None]]] | None:
    # Late: its SDK takes a moment to import, and no other command needs it.
    try:
        from gateway.demo.s3_start import sample_on_s3  # noqa: PLC0415
    except ImportError as exc:
        _show(
            f"going on without S3 and dir access: {exc.name} is not installed: "
            "pip install '.[s3,demo]' in a checkout of Sluice"
        )
        return None
    return sample_on_s3


def _port(text: str) -> int:
    # Not isdigit: it takes digits that int does not.
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise InvalidArgument(f"--port {text} is not a port: choose one from 1 to {_MAX_PORT}, or 0 for any")
    return int(text)


def _bound(port: int) -> socket.socket:
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


def _prepare(
    state: Path, profile: Path, base_url: str, shared: Mapping[str, Any], *, with_pipeline: bool
) -> Path:
    """Write what the demo serves below the state directory, and return the configuration file."""
    token, expires_at = _token(profile)
    write_private(profile, profile_of(base_url, token, expires_at), replace=True)
    write_private(header_file(profile), f"Authorization: Bearer {token}\n", replace=True)
    recipient = {
        "name": "demo",
        "shares": "*",
        "tokens": [{"hash": hash_of(token), "expires": format_time(expires_at)}],
    }
    settings = {
        "version": 1,
        "publicUrl": base_url,
        "stateDir": str(state / "state"),
        "metrics": {"listen": _metrics_listen(base_url)},
        "log": {"level": "warning"},
        **shared,
        "recipients": [recipient],
    }
    if with_pipeline:
        add_pipeline(settings, state)
    file = state / "server.yaml"
    write_private(file, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), replace=True)
    return file


def what_is_shared(sample: SampleCatalog, s3_storage: dict[str, Any] | None) -> dict[str, Any]:
    """Return the shares and storages of the configuration."""
    shares = sample.to_shares()
    storages = [{"name": "sample", "prefix": str(sample.directory), "vendor": "local"}]
    if s3_storage is not None:
        shares[0]["schemas"].append(s3_sample.to_schema())
        storages.append(s3_storage)
    return {"shares": shares, "storages": storages}


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
