"""``sluice compare`` between two small servers."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from aiohttp.test_utils import TestServer

from gateway.commands import compare
from tests.fakes.sharing_server import FakeSharingServer, FakeTable

OLD_TOKEN, NEW_TOKEN = "0ld-t0k3n-0123456789", "n3w-t0k3n-0123456789"
KEY = ("sales", "q1", "orders")


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    def lines(self) -> list[str]:
        return [line.strip() for line in self.out.splitlines()]


Compare = Callable[..., Outcome]


def parquet(rows: Sequence[int]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame({"id": rows}, {"id": pl.Int64}).write_parquet(stream)
    return stream.getvalue()


def table() -> FakeTable:
    contents = {"f1": parquet([1, 2, 3]), "f2": parquet([4, 5])}
    schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
    return FakeTable(
        metadata={
            "id": "m1",
            "format": {"provider": "parquet"},
            "schemaString": json.dumps(schema),
            "partitionColumns": ["p"],
            "configuration": {},
        },
        files=[
            {
                "id": "f1",
                "size": len(contents["f1"]),
                "partitionValues": {"p": "a"},
                "stats": '{"numRecords":3}',
            },
            {
                "id": "f2",
                "size": len(contents["f2"]),
                "partitionValues": {"p": None},
                "stats": '{"numRecords":2}',
            },
        ],
        contents=contents,
    )


@pytest.fixture
def old() -> FakeSharingServer:
    tables = {KEY: table(), ("sales", "q2", "orders"): table(), ("hr", "x", "people"): table()}
    return FakeSharingServer(shares={"sales": {}, "hr": {}}, tables=tables, token=OLD_TOKEN)


@pytest.fixture
def new(old: FakeSharingServer) -> FakeSharingServer:
    made = deepcopy(old)
    made.token = NEW_TOKEN
    return made


@pytest.fixture
def run(
    old: FakeSharingServer, new: FakeSharingServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Compare:
    """Serve both, and compare them as the command does."""

    async def serve(arguments: Sequence[str]) -> int:
        async with AsyncExitStack() as stack:
            profiles = []
            for name, fake, token in (("old", old, OLD_TOKEN), ("new", new, NEW_TOKEN)):
                server = await stack.enter_async_context(TestServer(fake.app()))
                profiles.append(write_profile(tmp_path / f"{name}.share", str(server.make_url("/s/")), token))
            return await asyncio.to_thread(command, *profiles, *arguments)

    def compared(*arguments: str) -> Outcome:
        status = asyncio.run(serve(arguments))
        captured = capsys.readouterr()
        for text in captured:
            assert OLD_TOKEN not in text
            assert NEW_TOKEN not in text
            assert "s3cr3t" not in text
        return Outcome(status, captured.out, captured.err)

    return compared


def write_profile(path: Path, endpoint: str, token: str, **more: object) -> str:
    path.write_text(
        json.dumps({"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": token, **more})
    )
    return str(path)


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    compare.configure(parser)
    return compare.run(parser.parse_args(arguments), {})


@pytest.mark.parametrize("data", ["rows", "files", "none"])
def test_equal_servers_have_no_differences(run, data):
    outcome = run("--data", data)
    assert outcome.status == 0
    assert outcome.lines()[-1] == "3 tables compared, 0 differences"


def test_nothing_is_downloaded_unless_rows_are_asked_for(run, old, new):
    run()
    assert not any("/files/" in request for request in old.requests + new.requests)
    run("--data", "none")
    assert not any(request.startswith("GET /files/") for request in old.requests + new.requests)


def test_without_data_no_files_are_listed(run, old, new):
    run("--data", "none")
    assert not any(request.startswith("POST") for request in old.requests + new.requests)


def test_every_kind_of_difference_is_reported(run, old, new):
    new.shares["extra"] = {}
    new.shares["sales"] = {"displayName": "Sales"}
    old.shares["sales"] = {"comment": "all of them"}
    del new.tables["hr", "x", "people"]
    old.extra_schemas = {"sales": ["q3"]}
    changed = new.tables[KEY]
    changed.entry = {"location": "file:///t", "accessModes": ["url"]}
    changed.version = 4
    changed.protocol = {"minReaderVersion": 2}
    changed.metadata |= {"configuration": {"delta.appendOnly": "true"}, "size": 5, "numFiles": 2}
    changed.files[0] |= {"size": 1, "stats": '{"numRecords": 3.0}', "expirationTimestamp": 5}
    changed.files[1]["partitionValues"] = {"p": ""}
    outcome = run()
    assert outcome.status == 1
    assert {
        "share extra: only in new",
        "schema x: only in old",
        "table x.people: only in old",
        "schema q3: only in old",
        'comment: "all of them" in old, missing in new',
        "version: 3 in old, 4 in new",
        "protocol.minReaderVersion: 1 in old, 2 in new",
        'metaData.configuration.delta.appendOnly: missing in old, "true" in new',
        'note: file.partitionValues.p: null in old, "" in new (1 file, e.g. f2)',
        "displayName (1 share)",
        "location (1 table)",
        "accessModes (1 table)",
        "metaData.size (1 table)",
        "file.expirationTimestamp (1 table)",
    } <= set(outcome.lines())
    assert any(line.startswith("file.size: ") for line in outcome.lines())
    assert not any("stats" in line for line in outcome.lines())
    assert outcome.lines()[-1] == "2 tables compared, 9 differences"


def test_rows_that_differ_behind_the_same_listing_are_found(run, new):
    other = parquet([1, 2, 9])
    assert len(other) == len(new.tables[KEY].contents["f1"])
    new.tables[KEY].contents["f1"] = other
    assert run().status == 0
    outcome = run("--data", "rows")
    assert outcome.status == 1
    assert "rows: 5 in old, 5 in new (other content in files 1 (f1))" in outcome.lines()
    assert outcome.lines()[-1] == "3 tables compared, 1 difference"


def test_files_that_cannot_be_read_are_differences(run, new):
    del new.tables[KEY].contents["f1"]
    new.tables[KEY].contents["f2"] = b"no parquet"
    outcome = run("--data", "rows")
    assert outcome.status == 1
    (line,) = [line for line in outcome.lines() if line.startswith("rows:")]
    assert line.startswith("rows: files that cannot be read in new: 2 (f1, f2), because 403 from the store")


def test_an_error_of_one_table_is_a_difference_and_the_others_are_compared(run, new):
    new.tables[KEY].errors = {"query": 404, "metadata": 400}
    outcome = run()
    assert outcome.status == 1
    assert any(line.startswith("query: answered in old, 404 SOME_CODE") for line in outcome.lines())
    assert any(line.startswith("metadata: answered in old, 400 SOME_CODE") for line in outcome.lines())
    assert outcome.lines()[-1] == "3 tables compared, 2 differences"


def test_a_table_that_neither_server_lets_be_read_is_not_counted_as_compared(run, old, new):
    for server in (old, new):
        server.tables[KEY].errors = {"query": 400}
    outcome = run()
    assert outcome.status == 3
    assert any(line.startswith("note: query: 400") for line in outcome.lines())
    assert outcome.lines()[-1] == ("2 tables compared, 1 could not be read from either server, 0 differences")


def test_a_difference_weighs_more_than_what_could_not_be_read(run, old, new):
    for server in (old, new):
        server.tables[KEY].errors = {"query": 400}
    new.tables["hr", "x", "people"].version = 9
    assert run().status == 1


def test_tables_that_need_the_delta_format_are_compared_by_their_actions(run, old, new):
    for server in (old, new):
        server.tables[KEY].is_delta = True
        server.tables[KEY].protocol = {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}
        vector = {"storageType": "i", "pathOrInlineDv": "wi5b=", "sizeInBytes": 40, "cardinality": 1}
        server.tables[KEY].files[0]["deletionVector"] = vector
    outcome = run()
    assert (outcome.status, outcome.lines()[-1]) == (0, "3 tables compared, 0 differences")

    new.tables[KEY].files[0]["deletionVector"] = {**vector, "cardinality": 2}
    new.tables[KEY].protocol = {"minReaderVersion": 3, "readerFeatures": []}
    outcome = run("--data", "rows")
    assert outcome.status == 1
    assert {
        "file.deletionVector.cardinality: 1 in old, 2 in new (1 file, e.g. f1)",
        'protocol.readerFeatures: ["deletionVectors"] in old, missing in new',
        "note: rows: not compared: 1 file with deletion vectors",
    } <= set(outcome.lines())


def test_names_are_the_same_in_any_case(run, new):
    new.shares = {"SALES": {}, "hr": {}}
    new.tables = {
        ("SALES" if share == "sales" else share, *rest): value for (share, *rest), value in new.tables.items()
    }
    outcome = run()
    assert outcome.status == 0
    assert 'note: share name: "sales" in old, "SALES" in new' in outcome.lines()


def test_one_share_is_compared(run, new):
    del new.tables["hr", "x", "people"]
    outcome = run("--share", "Sales")
    assert (outcome.status, outcome.lines()[-1]) == (0, "2 tables compared, 0 differences")


def test_single_tables_are_compared(run, new):
    new.tables["sales", "q2", "orders"].version = 99
    outcome = run("--table", "sales.q1.orders", "--table", "hr.x.people")
    assert (outcome.status, outcome.lines()[-1]) == (0, "2 tables compared, 0 differences")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--share", "nope"), "neither server has a share nope"),
        (("--table", "sales.q9.orders"), "neither server has a table sales.q9.orders"),
    ],
)
def test_what_neither_server_has_cannot_be_compared(run, arguments, reason):
    outcome = run(*arguments)
    assert outcome.status == 2
    assert reason in outcome.err


def test_the_report_comes_as_json(run, new):
    new.tables[KEY].version = 4
    outcome = run("--json")
    parsed = json.loads(outcome.out)
    assert parsed["tables"] == 3
    assert parsed["differences"] == [
        {"subject": "table sales.q1.orders", "what": "version", "old": 3, "new": 4}
    ]


def test_a_refused_token_cannot_be_compared_and_is_not_echoed(run, new):
    new.token = "another"
    outcome = run()
    assert outcome.status == 2
    assert "the new server does not list its shares: 401" in outcome.err


def test_a_throttling_server_is_waited_for(run, new):
    new.hiccups = [(429, {"Retry-After": "0"}), (503, {"Retry-After": "0"})]
    assert run().status == 0


def test_a_server_that_nobody_answers_for_cannot_be_compared(tmp_path, capsys):
    with socket.socket() as taken:
        # Bound and not listening: whoever connects is refused.
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        profile = write_profile(tmp_path / "a.share", endpoint, OLD_TOKEN)
        assert command(profile, profile) == 2
    assert "the old server does not list its shares: cannot connect" in capsys.readouterr().err


def test_an_expired_profile_cannot_be_used(tmp_path, capsys):
    profile = write_profile(
        tmp_path / "a.share", "http://127.0.0.1", OLD_TOKEN, expirationTime="2020-01-01T00:00:00Z"
    )
    assert command(profile, profile) == 2
    assert "expired at 2020-01-01T00:00:00Z" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["orders", "q1.orders", "a..b"])
def test_a_table_without_share_and_schema_is_refused(capsys, name):
    with pytest.raises(SystemExit) as caught:
        command("a", "b", "--table", name)
    assert caught.value.code == 2
    assert "SHARE.SCHEMA.TABLE" in capsys.readouterr().err
