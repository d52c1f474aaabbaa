"""From REST calls to the report of them: served, shipped, counted, printed, and shared again."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.commands.bearer import hash_of
from gateway.config.schema import UsageConfig
from gateway.demo.sample import SHARE
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.work.places import SparkPlaces
from gateway.work.usage import UsageCraft
from pipeline.jobs.usage import run
from tests.components import ALL_IN_ONE, CLIENT, SPARK_PIPELINE
from tests.deployments import Deployment, all_in_one
from tests.http import request
from tests.repository import ROOT

pytestmark = [
    pytest.mark.component(ALL_IN_ONE),
    pytest.mark.component(CLIENT),
    pytest.mark.component(SPARK_PIPELINE),
]

EXAMPLE = ROOT / "docs" / "examples" / "usage-share.yaml"
TOKENS = {name: secrets.token_urlsafe(32) for name in ("acme", "globex", "auditors")}
BIG = 10_000
HOUR = timedelta(hours=1)


@dataclass
class Counted:
    """A gateway that was asked some things and stopped, and the tables of that."""

    directory: Path
    config: Path
    orders: Path
    result: dict[str, Any]
    landed: list[Path]
    left: list[Path]
    asked_at: datetime

    @property
    def days(self) -> set[str]:
        """Return the day of the requests: around midnight there are two."""
        return {(self.asked_at + hours).date().isoformat() for hours in (-HOUR, HOUR)}

    def usage(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "gateway", "usage", *arguments, "--config", str(self.config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def counted(sample, spark, tmp_path_factory) -> Counted:
    directory = tmp_path_factory.mktemp("usage")
    places = {"landing": str(directory / "landing"), "location": str(directory / "tables")}
    settings = {
        "shares": sample.catalog.to_shares(),
        "storages": [{"name": "sample", "prefix": str(sample.catalog.directory), "vendor": "local"}],
        "recipients": [
            {"name": name, "tokens": [{"hash": hash_of(TOKENS[name])}], "shares": [SHARE]}
            for name in ("acme", "globex")
        ],
        "usage": places,
    }
    with all_in_one(directory / "gateway", settings) as deployment:
        ask(deployment)
        asked_at = datetime.now(UTC)
        assert deployment.edge.stop() == 0
        config = deployment.edge.config_file
    landed = sorted((directory / "landing").rglob("*.jsonl"))
    left = sorted((directory / "gateway").rglob("*.jsonl"))
    result = run(spark, plan(places), lambda *_: None)
    orders = sample.catalog.directory / "sales" / "orders"
    return Counted(directory, config, orders, result, landed, left, asked_at)


def ask(deployment: Deployment) -> None:
    base = deployment.base_url
    table = f"{base}/shares/{SHARE}/schemas"
    for _ in range(2):
        assert request(f"{base}/shares", token=TOKENS["acme"]).status == 200
    for _ in range(3):
        answer = request(
            f"{table}/sales/tables/orders/query", token=TOKENS["acme"], method="POST", body=b"{}"
        )
        assert answer.status == 200
    assert request(f"{table}/SALES/tables/Orders/metadata", token=TOKENS["acme"]).status == 200
    big = request(
        f"{table}/big/tables/ten_thousand_files/query", token=TOKENS["globex"], method="POST", body=b"{}"
    )
    assert big.body.count(b'{"file":') == BIG
    for _ in range(2):
        missing = f"{table}/sales/tables/none/query"
        assert request(missing, token=TOKENS["globex"], method="POST", body=b"{}").status == 404
    # Local files have no credentials for directories: asked for, and not given.
    credentials = f"{table}/sales/tables/orders/temporary-table-credentials"
    assert request(credentials, token=TOKENS["globex"], method="POST", body=b"{}").status == 400
    assert request(f"{base}/shares").status == 401


def plan(places: dict[str, str]) -> Any:
    class NoStorages:
        def find(self, location):
            return None

    craft = UsageCraft(UsageConfig(**places), SparkPlaces(NoStorages()))
    now = datetime.now(UTC)
    job = Job(key=JobKey(kind=JobKind.USAGE), sequence=1, state=JobState.RUNNING, requested_at=now)
    return _run(craft.plan(job)).body


def _run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a plan of usage waits for nothing")


def test_gateway_ships_all_of_its_audit_log_before_it_ends(counted):
    assert counted.left == []
    assert counted.landed
    lines = [json.loads(line) for file in counted.landed for line in file.read_text().splitlines()]
    # A query by URLs is told of twice.
    assert len(lines) == 11 + 4 == counted.result["events"]
    assert counted.days >= {file.parent.name for file in counted.landed}


def test_report_says_what_was_done(counted):
    report = json.loads(counted.usage("--json"))
    totals = report["totals"]
    assert (totals["requests"], totals["denials"], totals["failures"]) == (11, 3, 1)
    assert (totals["credentials"], totals["recipients"], totals["tables"]) == (0, 2, 2)
    tables = {row["name"].lower(): row for row in report["tables"]}
    big, orders = tables["sample.big.ten_thousand_files"], tables["sample.sales.orders"]
    assert (big["requests"], big["files"], big["recipients"]) == (1, BIG, 1)
    assert (orders["requests"], orders["recipients"], orders["failures"]) == (5, 1, 1)
    recipients = {row["name"]: row for row in report["recipients"]}
    assert {name: row["requests"] for name, row in recipients.items()} == {
        "acme": 6,
        "globex": 4,
        "(unknown caller)": 1,
    }
    assert sum(row["requests"] for row in report["days"]) == 11


def test_reports_for_people_name_tables_and_recipients(counted):
    text = counted.usage()
    assert "sample.big.ten_thousand_files" in text
    assert "globex" in text
    assert "acme was given access to sample.sales.orders for the first time" in text
    by_hour = "".join(counted.usage("timeline", "--day", day) for day in sorted(counted.days))
    assert sum(map(int, re.findall(r"^ *\d\d:\d\d +(\d+)", by_hour, re.MULTILINE))) == 11


def test_page_is_whole_and_asks_for_nothing(counted, tmp_path):
    page = tmp_path / "usage.html"
    counted.usage("--html", str(page))
    text = page.read_text()
    assert text.endswith("</html>\n")
    assert "sample.big.ten_thousand_files" in text
    assert not any(word in text for word in ("http:", "https:", "<script", "@import", "url("))


def test_who_could_read_a_place_is_told_by_one_command(counted):
    file, at = f"{counted.orders}/part-0.parquet", counted.asked_at.isoformat()
    found = json.loads(counted.usage("who-could-read", file, "--at", at, "--json"))
    assert {row["recipient"] for row in found["grants"]} == {"acme"}
    assert len(found["grants"]) == 3
    assert "nobody" in counted.usage("who-could-read", file, "--at", "2020-01-01T00:00")
    assert "nobody" in counted.usage("who-could-read", f"{counted.orders}_old", "--at", at)


def test_example_share_gives_auditors_the_tables(counted, official_client, tmp_path):
    text = EXAMPLE.read_text().replace("/var/lib/sluice", str(counted.directory))
    text = text.replace(f"{counted.directory}/usage", f"{counted.directory}/tables")
    settings = yaml.safe_load(text)
    settings["recipients"][0]["tokens"][0]["hash"] = hash_of(TOKENS["auditors"])
    settings["limits"] = {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}}
    with all_in_one(tmp_path / "auditing", settings) as deployment:
        profile = tmp_path / "auditors.share"
        profile.write_text(
            json.dumps(
                {
                    "shareCredentialsVersion": 1,
                    "endpoint": deployment.base_url,
                    "bearerToken": TOKENS["auditors"],
                }
            )
        )
        tables = official_client.call("list_all_tables", profile)
        daily = official_client.call("load_as_pandas", profile, "usage.audit.usage_daily")
        for name in tables:
            official_client.call("load_as_pandas", profile, name)
    assert len(tables) == 7
    rows = [json.loads(row) for row in daily["rows"]]
    assert sum(row["requests"] for row in rows) == 11
    assert sum(row["files"] for row in rows if row["recipient"] == "globex") == BIG
