"""What a caller could learn from the catalog by a stopwatch, and what a page costs at either end of a list.

Calls for shares that are not granted and for shares that are not there alternate, so that a busy moment
of the machine falls on both. The first page of a list is the peer of the last.
"""

from __future__ import annotations

import asyncio
import hashlib
import platform
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.adapters.catalog_yaml import YamlCatalog, build_index
from gateway.config.schema import Config
from gateway.domain.audit import AuditEvent
from gateway.domain.key import Key, Keys
from gateway.errors import NotFound
from gateway.rpc.local import LOCAL_PEER
from gateway.services.catalog.grant_signer import GrantSigner
from gateway.services.catalog.servicer import CatalogServicer
from gateway.v1 import catalog_pb2 as pb
from tests.fakes.views import fake_views

SHARES = 2_000
CALLS = 20_000
TABLES = 100_000
PAGES = 300
PAGE_SIZE = 500
RESULTS = Path(__file__).parent / "results"
CALLER = pb.Caller(token_sha256=hashlib.sha256(b"bench").digest())
PERCENTILES = (50, 90, 99)

REQUESTS: dict[str, Callable[[str], Any]] = {
    "Resolve": lambda share: pb.ResolveRequest(
        caller=CALLER, share=share, schema="main", table="t", audiences=[pb.AUDIENCE_SNAPSHOT]
    ),
    "GetShare": lambda share: pb.GetShareRequest(caller=CALLER, share=share),
    "ListSchemas": lambda share: pb.ListSchemasRequest(caller=CALLER, share=share),
    "ListTables": lambda share: pb.ListTablesRequest(caller=CALLER, share=share, schema="main"),
    "ListAllTables": lambda share: pb.ListAllTablesRequest(caller=CALLER, share=share),
}


def main() -> None:
    lines = [
        "# Times of the catalog",
        "",
        f"Python {platform.python_version()}, the servicer called directly, in microseconds.",
        "",
        *asyncio.run(_secrecy()),
        "",
        *asyncio.run(_pages()),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "catalog_timing.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


async def _secrecy() -> list[str]:
    granted = [f"granted-{number:05}" for number in range(SHARES)]
    ungranted = [f"private-{number:05}" for number in range(SHARES)]
    missing = [f"missing-{number:05}" for number in range(SHARES)]
    tables = [{"name": "t", "location": "/t"}]
    servicer = _servicer(
        [{"name": name, "schemas": [{"name": "main", "tables": tables}]} for name in (*granted, *ungranted)],
        granted,
    )
    lines = [
        f"{CALLS:,} calls each for a share that is not granted and for one that is not there, in turn.",
        "",
        "| call | | " + " | ".join(f"p{percentile}" for percentile in PERCENTILES) + " |",
        "|---|---|" + "---|" * len(PERCENTILES),
    ]
    for method, request in REQUESTS.items():
        times = await _alternate(getattr(servicer, method), request, ungranted, missing)
        rows = [_percentiles(each) for each in times]
        ratio = [f"{one / other:.2f}" for one, other in zip(*rows, strict=True)]
        lines += [_row(method, "not granted", [f"{us:.1f}" for us in rows[0]])]
        lines += [_row("", "not there", [f"{us:.1f}" for us in rows[1]]), _row("", "ratio", ratio)]
    return lines


async def _alternate(
    call: Callable[..., Any], request: Callable[[str], Any], *names: Sequence[str]
) -> list[list[float]]:
    """Return the microseconds that the calls for each kind of name took."""
    choose = random.Random(1)  # noqa: S311 -- which name is asked for is no secret
    times: list[list[float]] = [[] for _ in names]
    for number in range(CALLS + 1_000):
        for taken, kind in zip(times, names, strict=True):
            message = request(choose.choice(kind))
            started = time.perf_counter_ns()
            try:
                await call(message, _CONTEXT)
            except NotFound:
                elapsed = time.perf_counter_ns() - started
            # The first calls warm the caches.
            if number >= 1_000:
                taken.append(elapsed / 1e3)
    return times


async def _pages() -> list[str]:
    tables = [{"name": f"table-{number:06}", "location": f"/data/{number}"} for number in range(TABLES)]
    shares = [{"name": "all", "schemas": [{"name": "main", "tables": tables}]}]
    servicer = _servicer(shares, ["all"])
    first, last = pb.ListTablesRequest(), pb.ListTablesRequest()
    for request in (first, last):
        request.MergeFrom(
            pb.ListTablesRequest(caller=CALLER, share="all", schema="main", max_results=PAGE_SIZE)
        )
    token = ""
    while True:
        last.page_token = token
        answer = await servicer.ListTables(last, _CONTEXT)
        if not answer.next_page_token:
            break
        token = answer.next_page_token
    times: dict[str, list[float]] = {"first": [], "last": []}
    for _ in range(PAGES):
        for name, request in (("first", first), ("last", last)):
            started = time.perf_counter_ns()
            answer = await servicer.ListTables(request, _CONTEXT)
            times[name].append((time.perf_counter_ns() - started) / 1e3)
            assert len(answer.items) == PAGE_SIZE
    rows = {name: _percentiles(taken) for name, taken in times.items()}
    ratio = [f"{one / other:.2f}" for one, other in zip(rows["last"], rows["first"], strict=True)]
    return [
        f"A page of {PAGE_SIZE} of {TABLES:,} tables, {PAGES} times.",
        "",
        "| page | | " + " | ".join(f"p{percentile}" for percentile in PERCENTILES) + " |",
        "|---|---|" + "---|" * len(PERCENTILES),
        *(_row(name, "", [f"{us:.0f}" for us in row]) for name, row in rows.items()),
        _row("", "ratio", ratio),
    ]


def _servicer(shares: list[dict[str, Any]], granted: list[str]) -> Any:
    token = {"hash": f"sha256:{CALLER.token_sha256.hex()}"}
    recipients = [{"name": "bench", "shares": granted, "tokens": [token]}]
    config = Config.model_validate({"shares": shares, "recipients": recipients})
    started = time.perf_counter()
    index = build_index(config)
    print(f"built an index of {len(index.tables):,} tables in {time.perf_counter() - started:.1f} s")
    return CatalogServicer(
        store=YamlCatalog(index),
        signer=GrantSigner("k1", Ed25519PrivateKey.generate(), _now),
        page_keys=Keys(current=Key(id="k1", secret=b"s" * 32)),
        views=fake_views(_now),
        audit=_NoAudit(),
        clock=_now,
    )


def _percentiles(times: Sequence[float]) -> list[float]:
    cuts = quantiles(times, n=100)
    return [cuts[percentile - 1] for percentile in PERCENTILES]


def _row(*cells: str | list[str]) -> str:
    flat = [cell for each in cells for cell in (each if isinstance(each, list) else [each])]
    return f"| {' | '.join(flat)} |"


def _now() -> datetime:
    return datetime.now(UTC)


class _NoAudit:
    async def append(self, event: AuditEvent) -> None:
        raise AssertionError("an edge keeps its own log")

    def note(self, event: AuditEvent) -> None:
        raise AssertionError("an edge keeps its own log")


class _Context:
    """A call from this process."""

    def peer(self) -> str:
        return LOCAL_PEER

    def auth_context(self) -> dict[str, list[bytes]]:
        return {}

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()


_CONTEXT = _Context()


if __name__ == "__main__":
    main()
