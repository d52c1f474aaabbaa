"""Two replicas of the gateway before one token service and one Redis, and a judge of what they hand out."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.key import scope_key
from gateway.adapters.cache.rhythm import Rhythm, rhythm_of
from gateway.adapters.storage_plan import plan_storages
from gateway.commands.bearer import hash_of
from gateway.config.load import load
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from tests.deployments import Deployment, all_in_one
from tests.doubles.steerable_sts import SteerableSts, read_token

LIFE = timedelta(hours=12)
# What is left of a life at the end of its window.
LEAST = LIFE / 2
RATES = {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Mapping[str, Any] = field(repr=False)
    headers: Mapping[str, str]


@dataclass
class Judge:
    """Counts what must never happen."""

    faults: Counter[str] = field(default_factory=Counter)
    seen: int = 0

    def look(self, answer: Answer, recipient: str, table: str, least: timedelta = LEAST) -> None:
        """Hold a credential against the table and the recipient that it was given to."""
        credentials = answer.body["credentials"]
        minted = read_token(credentials["awsTempCredentials"]["sessionToken"])
        left = credentials["expirationTime"] / 1000 - time.time()
        self.seen += 1
        self.faults["wrong scope"] += minted.prefix != f"tables/{table}/*"
        self.faults["wrong location"] += credentials["location"] != f"s3://lake/tables/{table}"
        self.faults["of another recipient"] += minted.recipient != recipient
        self.faults["expired"] += left <= 0
        # The answer has been on its way for a moment.
        self.faults["too short"] += left < (least - timedelta(seconds=60)).total_seconds()

    @property
    def verdict(self) -> dict[str, int]:
        return {fault: count for fault, count in self.faults.items() if count}


@dataclass
class Fleet:
    replicas: Sequence[Deployment]
    tokens: Mapping[str, str] = field(repr=False)
    client: aiohttp.ClientSession = field(repr=False)

    async def vend(self, replica: int, recipient: str, table: str) -> Answer:
        base = self.replicas[replica].base_url
        url = f"{base}/shares/lake/schemas/default/tables/{table}/temporary-table-credentials"
        headers = {"Authorization": f"Bearer {self.tokens[recipient]}"}
        async with self.client.post(url, headers=headers) as response:
            return Answer(response.status, await response.json(), dict(response.headers))

    async def total(self, metric: str, **labels: str) -> float:
        """Return a metric's sum over all replicas that run, and over the labels that are not named."""
        found = await asyncio.gather(
            *(self._samples(deployment) for deployment in self.replicas if _runs(deployment))
        )
        return sum(
            sample.value
            for samples in found
            for sample in samples
            if sample.name == metric and labels.items() <= sample.labels.items()
        )

    def most_mints(self, recipient: str, table: str, began: datetime, ended: datetime) -> int:
        """Return for how many windows the pair's credentials may have been minted in that time.

        One for each window that it was asked in, and one for the next when that had come near.
        """
        rhythm = self._rhythm(recipient, table)
        first, last = rhythm.turn_at(began), rhythm.turn_at(ended)
        windows = 1 + (last.start - first.start) // rhythm.width
        return windows + (ended >= last.end - rhythm.ahead)

    def _rhythm(self, recipient: str, table: str) -> Rhythm:
        location = parse_location(f"s3://lake/tables/{table}")
        key = scope_key(self._fingerprint, Scope(location=location, recipient=recipient, life=LIFE))
        return rhythm_of(key, LIFE)

    @cached_property
    def _fingerprint(self) -> bytes:
        # Once: to parse the file for each of 2,000 pairs takes longer than to serve them.
        (planned,) = plan_storages(load(self.replicas[0].edge.config_file, {}).config)
        fingerprint = Fingerprint(planned).value
        assert fingerprint is not None
        return fingerprint

    async def _samples(self, deployment: Deployment) -> list[Sample]:
        async with self.client.get(f"{deployment.edge.metrics_url}/metrics") as response:
            text = await response.text()
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


@asynccontextmanager
async def running_fleet(
    directory: Path,
    sts: SteerableSts,
    redis_url: str,
    *,
    tables: Sequence[str],
    recipients: Sequence[str],
    replicas: int = 2,
    redis: Mapping[str, str] | None = None,
) -> AsyncIterator[Fleet]:
    """Start replicas that share their keys and a Redis, with settings of its own if a test gives some."""
    tokens = {recipient: secrets.token_urlsafe(24) for recipient in recipients}
    # A busy machine delays replies and renewals of leases: without them, replicas mint twice.
    cache = {"url": redis_url, "timeout": "5s", "leaseTime": "20s", **(redis or {})}
    settings = _settings(sts, cache, tables, tokens)
    async with AsyncExitStack() as stack:
        deployments = await stack.enter_async_context(_in_threads(directory, settings, replicas))
        timeout = aiohttp.ClientTimeout(total=120)
        client = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        )
        yield Fleet(deployments, tokens, client)


@asynccontextmanager
async def _in_threads(
    directory: Path, settings: dict[str, Any], count: int
) -> AsyncIterator[list[Deployment]]:
    """Start and stop all at once, and elsewhere: the token service runs on this event loop."""
    async with AsyncExitStack() as stack:

        async def start(number: int) -> Deployment:
            replica = all_in_one(directory / f"replica-{number}", settings)
            running = await asyncio.to_thread(replica.__enter__)
            stack.push_async_callback(asyncio.to_thread, replica.__exit__, None, None, None)
            return running

        # All are waited for even if one fails: those that run must be stopped.
        started = await asyncio.gather(*map(start, range(count)), return_exceptions=True)
        for each in started:
            if isinstance(each, BaseException):
                raise each
        yield [each for each in started if not isinstance(each, BaseException)]


def _runs(deployment: Deployment) -> bool:
    return deployment.edge.process.poll() is None


def _settings(
    sts: SteerableSts, redis: Mapping[str, str], tables: Sequence[str], tokens: Mapping[str, str]
) -> dict[str, Any]:
    entries = [
        {
            "name": table,
            "location": f"s3://lake/tables/{table}",
            "historyShared": True,
            "accessModes": ["dir"],
        }
        for table in tables
    ]
    return {
        "version": 1,
        "shares": [{"name": "lake", "schemas": [{"name": "default", "tables": entries}]}],
        "recipients": [
            {"name": recipient, "tokens": [{"hash": hash_of(token)}], "shares": "*"}
            for recipient, token in tokens.items()
        ],
        "storages": [
            {
                "name": "lake",
                "prefix": "s3://lake",
                "vendor": "s3",
                "credentialLife": f"{int(LIFE.total_seconds())}s",
                "options": {
                    "profile": "custom",
                    "capabilities": {"inlinePolicy": True},
                    "endpoint": sts.endpoint,
                    "identity": {
                        "kind": "keys",
                        "accessKeyId": "gateway",
                        "secretAccessKey": {"value": "of the gateway"},
                    },
                },
            }
        ],
        "cache": {"redis": dict(redis)},
        "keys": {"current": {"secret": secrets.token_urlsafe(32)}},
        "limits": RATES,
    }
