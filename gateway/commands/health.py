"""``sluice health``: ask a gateway's process on this machine whether it is well, for probes without curl."""

from __future__ import annotations

import argparse
import http.client
import json
import sys
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from gateway.errors import InvalidArgument

_LISTEN: Final = "SLUICE_METRICS_LISTEN"
_DEFAULT_LISTEN: Final = "127.0.0.1:9401"
# Who listens on every interface is asked on loopback.
_EVERY_INTERFACE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- not bound
_MOST_READ: Final = 64 * 1024

_EPILOG: Final = """\
URL is that of metrics.listen, such as http://127.0.0.1:9401; without it SLUICE_METRICS_LISTEN is asked,
and without that the default. A metrics.listen that stands in the configuration only has to be given.

exit status:
  0  it is alive; with --ready: it can serve
  1  it is not, or does not answer
  2  wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("url", metavar="URL", nargs="?", type=_address, help="where its metrics are")
    parser.add_argument(
        "--ready", action="store_true", help="ask for readiness: whether what it serves can be had from it"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=3.0, help="how long to wait (default: 3)"
    )


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    address: SplitResult = args.url or _listener(env)
    path = "/readyz" if args.ready else "/healthz"
    try:
        status, said = _ask(address, path, args.timeout)
    except (OSError, http.client.HTTPException, ValueError) as exc:
        print(f"sluice: {address.netloc} does not answer: {exc or type(exc).__name__}", file=sys.stderr)
        return 1
    print(said)
    return 0 if status == http.client.OK else 1


def _listener(env: Mapping[str, str]) -> SplitResult:
    try:
        return _address(f"http://{env.get(_LISTEN) or _DEFAULT_LISTEN}")
    except argparse.ArgumentTypeError as exc:
        raise InvalidArgument(f"{_LISTEN}: {exc}") from None


def _ask(address: SplitResult, path: str, timeout: float) -> tuple[int, str]:
    host = address.hostname or ""
    connection = http.client.HTTPConnection(_EVERY_INTERFACE.get(host, host), address.port, timeout=timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, _summary(response.status, response.read(_MOST_READ))
    finally:
        connection.close()


def _summary(status: int, body: bytes) -> str:
    try:
        said = json.loads(body)["status"]
    except (ValueError, TypeError, KeyError):
        # Another program has the port.
        said = "an answer that is no gateway's"
    return f"{status} {said}"


def _address(text: str) -> SplitResult:
    address = urlsplit(text)
    try:
        port = address.port
    except ValueError:
        port = None
    if address.scheme != "http" or not port or address.path not in ("", "/"):
        raise argparse.ArgumentTypeError(f"{text!r} is not like http://127.0.0.1:9401")
    return address


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 60:  # noqa: PLR2004 -- a probe waits for seconds; and nan is no number
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from above 0 to 60")
    return seconds
