from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from gateway.ports import OptionFault
from tests.cases import each_case
from tests.unit.vendors.words import told
from vendors.options import (
    Options,
    SecretOptions,
    Text,
    check_files,
    check_options,
    matching,
    parse_options,
    why_unreadable,
)

SECRET = "hunter2"


class Inner(Options):
    host_name: Text
    ca_file: Text | None = None


class Entry(Options):
    region: Text
    is_open: bool = False
    inner: Inner | None = None
    secret: SecretOptions | None = None
    color: Literal["red", "green"] = "red"
    many: Annotated[
        tuple[Annotated[str, matching("[a-z]+", "must be small letters")], ...], Field(strict=False)
    ] = ()

    def disagreements(self) -> Iterator[OptionFault]:
        if self.is_open and self.inner:
            yield OptionFault(path=("inner", "hostName"), message="is for what is closed")
            yield OptionFault(path=("isOpen",), message="is for what has no inner")


def test_right_options_have_no_faults():
    assert check_options(Entry, {"region": "eu", "isOpen": False, "inner": {"hostName": "a"}}) == []


@each_case(
    ("given", "fault"),
    [
        ({"is_open": True}, "is_open: unknown option; did you mean isOpen?"),
        ({"zzz": 1}, "zzz: unknown option; known are region, isOpen, inner, secret, color, many"),
        ({"inner": {"hostName": "a", "port": 1}}, "inner.port: unknown option; known are hostName, caFile"),
        ({"inner": {"hostNam": "a"}}, "inner.hostNam: unknown option; did you mean hostName?"),
        ({"inner": {}}, "inner.hostName: is missing"),
        ({"inner": "a"}, "inner: must be a mapping of keys to values"),
        ({"region": ""}, "region: must not be empty"),
        ({"region": 5}, "region: must be a text: put it in quotes"),
        ({"region": ["eu"]}, "region: must be a text"),
        ({"isOpen": "yes"}, "isOpen: must be true or false; did you mean true?"),
        ({"isOpen": "Off"}, "isOpen: must be true or false; did you mean false?"),
        ({"isOpen": "ture"}, "isOpen: must be true or false; did you mean true?"),
        ({"isOpen": 1}, "isOpen: must be true or false"),
        ({"color": "gren"}, "color: must be one of red, green; did you mean green?"),
        ({"color": 7}, "color: must be one of red, green"),
        ({"many": ["a", "B"]}, "many.1: must be small letters"),
        ({"many": "a"}, "many: must be a list"),
        ({"secret": SECRET}, "secret: give {file: PATH} or {value: TEXT}"),
        ({"secret": {}}, "secret: give either {file: PATH} or {value: TEXT}"),
        ({"secret": {"value": "a", "file": "b"}}, "secret: give either {file: PATH} or {value: TEXT}"),
        ({"secret": {"file": ""}}, "secret.file: must not be empty"),
    ],
)
def test_a_fault_stands_at_its_option_and_names_what_is_right(given, fault):
    assert told(check_options(Entry, {"region": "eu", **given})) == [fault]


def test_every_fault_is_told():
    assert set(told(check_options(Entry, {"isOpen": "maybe", "inner": {}}))) == {
        "region: is missing",
        "inner.hostName: is missing",
        "isOpen: must be true or false",
    }


def test_all_that_does_not_go_together_is_told():
    given = {"region": "eu", "isOpen": True, "inner": {"hostName": "a"}}

    assert told(check_options(Entry, given)) == [
        "inner.hostName: is for what is closed",
        "isOpen: is for what has no inner",
    ]


@each_case(
    "value",
    [
        {"region": SECRET, "isOpen": SECRET, "color": SECRET, "many": [SECRET], "inner": SECRET},
        {"region": 5, "secret": {"value": SECRET, "file": SECRET}},
        {"region": {SECRET: SECRET}, "secret": [SECRET]},
        {"region": "eu", "zzz": SECRET, "secret": {"valu": SECRET}},
    ],
)
def test_a_fault_never_shows_a_value(value):
    faults = check_options(Entry, value)

    assert faults
    assert SECRET not in " ".join(told(faults))


def test_a_secret_does_not_print():
    parsed = parse_options(Entry, {"region": "eu", "secret": {"value": SECRET}})

    assert SECRET not in repr(parsed)
    assert parsed.secret is not None
    assert parsed.secret.read() == SECRET


def test_a_secret_is_read_from_its_file_as_it_is_now(tmp_path):
    file = tmp_path / "secret"
    secret = SecretOptions.model_validate({"file": str(file)})
    file.write_text("first\n", encoding="utf-8")
    assert secret.read() == "first"
    file.write_text("second\r\n", encoding="utf-8")
    assert secret.read() == "second"


def test_a_secret_whose_file_is_gone_is_an_error(tmp_path):
    with pytest.raises(OSError, match="gone"):
        SecretOptions.model_validate({"file": str(tmp_path / "gone")}).read()


def test_options_do_not_change():
    parsed = parse_options(Entry, {"region": "eu"})

    with pytest.raises(ValidationError):
        setattr(parsed, "region", "us")  # noqa: B010 - the type checker knows already


def test_files_that_cannot_be_read_here_are_told_with_their_paths(tmp_path):
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.touch()
    given = {
        "region": "eu",
        "secret": {"file": str(gone)},
        "inner": {"hostName": "a", "caFile": str(tmp_path)},
    }

    assert told(check_files(parse_options(Entry, given))) == [
        f"inner.caFile: names a file that cannot be read here: {tmp_path}: Is a directory",
        f"secret.file: names a file that cannot be read here: {gone}: No such file or directory",
    ]
    assert check_files(parse_options(Entry, {**given, "secret": {"file": str(there)}, "inner": None})) == []


def test_a_secret_that_stands_in_the_file_is_no_file():
    assert check_files(parse_options(Entry, {"region": "eu", "secret": {"value": "/gone"}})) == []


def test_a_log_names_the_file_that_cannot_be_read(tmp_path):
    with pytest.raises(OSError, match="gone") as raised:
        SecretOptions.model_validate({"file": str(tmp_path / "gone")}).read()

    assert why_unreadable(raised.value) == (
        f"the file {tmp_path / 'gone'} cannot be read: No such file or directory"
    )
    assert why_unreadable(ConnectionResetError("reset")) == ""
