from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from gateway.commands import dispatch
from tests.fakes.usage_tables import DAY, NOON, anomaly, daily, grant, hourly, write_table

PERIOD = ["--since", "2026-11-10", "--until", "2026-11-17"]


@pytest.fixture
def config(tmp_path):
    tables = tmp_path / "usage"
    write_table(
        tables / "usage_daily",
        [
            daily(requests=3, files=9, bytes_granted=5 * 1024**3),
            daily(table="ORDERS", requests=2, denials=1, day=date(2026, 11, 16), p99_ms=70.0),
            daily("globex", "stock", bytes_granted=7 * 1024**3),
            daily("", "", grants=0, denials=1, mode="none"),
            daily("<b>\x1b[31m\x9b\x85\x7f\u202e", "x"),
            # A name that somebody thought of.
            daily("acme", "guessed", grants=0, denials=1),
            daily("old", day=date(2026, 1, 1)),
        ],
    )
    write_table(tables / "usage_hourly", [hourly(8, requests=5), hourly(23, denials=1)])
    write_table(tables / "anomalies", [anomaly(), anomaly("many_networks"), anomaly(day=date(2026, 11, 16))])
    write_table(tables / "credential_ledger", [grant("s3://lake/orders", NOON, NOON + timedelta(hours=1))])
    file = tmp_path / "server.yaml"
    file.write_text(f"allowAnonymous: true\nusage: {{location: {tables}}}\n")
    return file


@pytest.fixture
def ask(config, capsys):
    def asked(*arguments: str) -> str:
        status = dispatch(["usage", *arguments, "--config", str(config)], {})
        told = capsys.readouterr()
        assert status == 0, told.err
        out: str = told.out
        return out

    return asked


def test_report_adds_up_the_period_and_no_other_day(ask):
    report = json.loads(ask("--json", *PERIOD))
    assert report["totals"] == {
        "requests": 9,
        "files": 9,
        "bytes_granted": 12 * 1024**3,
        "credentials": 0,
        "denials": 3,
        "failures": 0,
        "recipients": 3,
        "tables": 3,
    }
    assert [(row["name"], row["requests"]) for row in report["tables"]] == [
        ("sales.eu.stock", 1),
        ("sales.eu.ORDERS", 5),
        ("sales.eu.x", 1),
    ]
    assert [row["day"] for row in report["days"]] == [f"2026-11-{day}" for day in range(10, 18)]


def test_percentile_of_the_worst_day_is_called_that(ask, tmp_path):
    rows = json.loads(ask("tables", "--json", *PERIOD))["tables"]
    assert [row["worst_daily_p99_ms"] for row in rows] == [9.0, 70.0, 9.0]
    assert "worst daily p99" in ask("recipients", *PERIOD)
    ask("--html", str(tmp_path / "page.html"), *PERIOD)
    assert ">worst daily p99<" in (tmp_path / "page.html").read_text()


def test_rarest_anomalies_of_the_last_day_come_first(ask):
    rows = json.loads(ask("anomalies", "--json", *PERIOD))["anomalies"]
    assert [(row["day"], row["rule"]) for row in rows] == [
        ("2026-11-17", "many_networks"),
        ("2026-11-17", "first_use"),
        ("2026-11-16", "first_use"),
    ]


def test_timeline_has_every_hour_of_the_last_day(ask):
    lines = ask("timeline", *PERIOD).splitlines()
    assert lines[0] == "Tuesday, 2026-11-17, UTC"
    assert len(lines) == 3 + 24
    assert lines[3 + 8].split()[:2] == ["08:00", "5"]


def test_names_that_callers_made_up_cannot_move_the_cursor(ask):
    assert not set("\x1b\x9b\x85\x7f\u202e") & set(ask("recipients", *PERIOD))
    written = ask("recipients", "--json", *PERIOD)
    assert written.isascii()
    assert all(letter.isprintable() for letter in written.replace("\n", ""))
    names = [row["name"] for row in json.loads(written)["recipients"]]
    assert "<b>\x1b[31m\x9b\x85\x7f\u202e" in names


def test_longer_lists_are_cut_and_say_so(ask):
    text = ask("recipients", "--top", "2", *PERIOD)
    assert text.splitlines()[-1] == "… and 2 more: --top 4 shows all"


def test_page_escapes_names_and_needs_nothing_else(ask, tmp_path):
    page = tmp_path / "page.html"
    assert ask("--html", str(page), *PERIOD) == f"wrote {page}\n"
    text = page.read_text()
    assert "&lt;b&gt;" in text
    assert "<b>\ufffd" not in text
    assert "\x1b" not in text
    assert not any(word in text for word in ("http:", "https:", "<script", "@import", "url("))


def test_who_could_read_answers_in_words_and_in_json(ask):
    asked = ("who-could-read", "s3://lake/orders/x", "--at", "2026-11-17T12:30")
    assert "acme" in ask(*asked)
    assert json.loads(ask(*asked, "--json"))["grants"][0]["valid_until"] == "2026-11-17T13:00:00Z"
    assert "nobody" in ask("who-could-read", "s3://lake/orders", "--at", "2026-11-17T14:00+00:00")


def test_configuration_may_be_given_by_its_name(config, capsys):
    assert dispatch(["usage", str(config), *PERIOD], {}) == 0
    assert dispatch(["usage", "tables", str(config), *PERIOD], {}) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tablez", "--config", "FILE"], "there is no report 'tablez'"),
        (["who-could-read", "--config", "FILE"], "takes a location"),
        (["who-could-read", "orders", "--config", "FILE"], "takes a location"),
        (["--since", "2026-11-18", "--until", "2026-11-17", "--config", "FILE"], "is after --until"),
        ([], "the configuration is missing"),
    ],
)
def test_wrong_usage_is_told_in_words(config, capsys, arguments, words):
    status = dispatch(["usage", *(str(config) if word == "FILE" else word for word in arguments)], {})
    assert status == 1
    assert words in capsys.readouterr().err


def test_configuration_without_tables_says_what_to_set(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text("allowAnonymous: true\n")
    assert dispatch(["usage", "--config", str(file)], {}) == 2
    assert "usage.location" in capsys.readouterr().err


def test_period_without_requests_is_a_report_of_nothing(ask):
    text = ask("--since", "2025-01-01", "--until", "2025-01-02")
    assert "nothing of any table was given" in text
    assert DAY.isoformat() not in text
