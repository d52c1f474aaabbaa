from __future__ import annotations

import io
import json

import pytest
from sluice_recipient.aws import process_command
from sluice_recipient.cli import main

from tests.fakes.recipient_transport import (
    PROFILE,
    SECRETS,
    FakeTransport,
    aws_answer,
    azure_answer,
    by_path,
    error,
    metadata,
    ok,
)


@pytest.fixture
def profile(tmp_path):
    file = tmp_path / "my reader.share"
    file.write_text(json.dumps(PROFILE))
    return file


class Terminal(io.StringIO):
    def isatty(self):
        return True


def _run(*arguments, answer, on=io.StringIO):
    out = on()
    status = main([str(argument) for argument in arguments], transport=FakeTransport(answer), out=out)
    return status, out.getvalue()


def test_credentials_are_printed_for_aws_tools(profile):
    status, printed = _run("credentials", f"{profile}#sales.shop.orders", answer=aws_answer())

    assert status == 0
    assert json.loads(printed)["AccessKeyId"] == "AKIA1"


ITEMS = [
    {"share": "sales", "schema": "shop", "name": "a", "accessModes": ["url", "dir"], "location": "s3://l/a"},
    {"share": "sales", "schema": "shop", "name": "longer"},
    {"share": "sales", "schema": "shop", "name": "c", "accessModes": ["url"], "location": "file:///srv/c"},
]


def _listing(items):
    return by_path(shares=ok({"items": [{"name": "sales"}]}), all_tables=ok({"items": items}))


def test_tables_are_listed_with_how_and_where_for_programs(profile):
    assert _run("tables", profile, answer=_listing(ITEMS)) == (
        0,
        "sales.shop.a\tdir,url\ts3://l/a\nsales.shop.longer\turl\t-\nsales.shop.c\turl\tfile:///srv/c\n",
    )


def test_tables_are_listed_in_columns_for_people(profile):
    _, printed = _run("tables", profile, answer=_listing(ITEMS), on=Terminal)

    assert printed == (
        "sales.shop.a       dir,url  s3://l/a\n"
        "sales.shop.longer  url      -\n"
        "sales.shop.c       url      file:///srv/c\n"
    )


@pytest.mark.parametrize("on", [io.StringIO, Terminal])
def test_no_tables_are_no_lines(profile, on):
    assert _run("tables", profile, answer=_listing([]), on=on) == (0, "")


@pytest.mark.parametrize("on", [io.StringIO, Terminal])
def test_what_a_server_calls_its_tables_cannot_move_the_cursor(profile, on):
    item = {"share": "sales", "schema": "shop", "name": "a\x1b[2J\tb\n", "location": "s3://l/\x07"}
    _, printed = _run("tables", profile, answer=_listing([item]), on=on)

    assert not {"\x1b", "\x07"} & set(printed)
    assert printed.count("\n") == 1


def test_a_stanza_names_the_command_and_the_place(profile):
    answer = aws_answer(region="eu-west-1", endpoint="http://127.0.0.1:9000")
    status, printed = _run("aws-config", f"{profile}#sales.shop.orders", answer=answer)

    assert status == 0
    assert printed.splitlines() == [
        "[profile sales.shop.orders]",
        f"credential_process = {process_command(f'{profile}#sales.shop.orders')}",
        "region = eu-west-1",
        "endpoint_url = http://127.0.0.1:9000",
    ]
    assert not any(secret in printed for secret in SECRETS)


def test_a_stanza_can_have_another_name(profile):
    _, printed = _run("aws-config", f"{profile}#a.b.c", "--name", "mine", answer=aws_answer())

    assert printed.startswith("[profile mine]\n")


@pytest.mark.parametrize("command", ["credentials", "aws-config"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (error(404, "table not found"), "table not found"),
        (error(401, "unknown token"), "is the profile still the right one"),
        (azure_answer(), "does not lie on S3"),
    ],
)
def test_errors_go_to_standard_error_with_a_fix(profile, capsys, command, answer, said):
    status, printed = _run(command, f"{profile}#sales.shop.orders", answer=answer)

    assert (status, printed) == (1, "")
    shown = capsys.readouterr().err
    assert said in shown
    assert not any(secret in shown for secret in SECRETS)


@pytest.mark.parametrize("command", ["credentials", "aws-config"])
def test_a_table_that_is_shared_by_urls_only_is_answered_with_how_to_read_it(profile, capsys, command):
    refusal = error(400, "table sales.shop.orders does not offer dir access, only url")
    answer = by_path(temporary_table_credentials=refusal, metadata=metadata(accessModes=["url"]))

    assert _run(command, f"{profile}#sales.shop.orders", answer=answer) == (1, "")

    shown = capsys.readouterr().err
    assert "does not offer dir access" in shown
    assert f'open_table("{profile}#sales.shop.orders", mode="url")' in shown


def test_a_refusal_of_a_table_that_has_a_directory_is_told_as_it_is(profile, capsys):
    answer = by_path(temporary_table_credentials=error(400, "not this one"), metadata=metadata())

    assert _run("credentials", f"{profile}#sales.shop.orders", answer=answer)[0] == 1
    assert capsys.readouterr().err == "sluice-recipient: not this one (HTTP 400)\n"


def test_a_wrong_address_says_the_form(capsys):
    assert _run("credentials", "reader.share", answer=aws_answer())[0] == 1
    assert "PROFILE#SHARE.SCHEMA.TABLE" in capsys.readouterr().err


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("credentials", "tables", "aws-config"))
