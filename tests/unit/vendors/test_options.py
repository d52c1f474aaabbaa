from __future__ import annotations

import pytest
from pydantic import ValidationError

from vendors.options import Options, SecretOptions, Text, check_options, parse_options

SECRET = "hunter2"


class Inner(Options):
    host_name: Text


class Entry(Options):
    region: Text
    is_open: bool = False
    inner: Inner | None = None
    secret: SecretOptions | None = None


def test_right_options_have_no_faults():
    assert check_options(Entry, {"region": "eu", "isOpen": True, "inner": {"hostName": "a"}}) == []


def test_options_are_spelled_in_camel_case_only():
    assert check_options(Entry, {"region": "eu", "is_open": True}) == [
        "unknown option 'is_open'; did you mean 'isOpen'?"
    ]


def test_an_unknown_option_names_the_known_ones():
    assert check_options(Entry, {"region": "eu", "zzz": 1}) == [
        "unknown option 'zzz'; there are region, isOpen, inner, secret"
    ]


def test_an_unknown_option_further_in_is_named_with_its_path():
    assert check_options(Entry, {"region": "eu", "inner": {"hostName": "a", "port": 1}}) == [
        "unknown option 'inner.port'"
    ]


def test_every_fault_is_told():
    faults = check_options(Entry, {"isOpen": "yes", "inner": {}})

    assert "the option 'region' is missing" in faults
    assert "the option 'inner.hostName' is missing" in faults
    assert any(fault.startswith("isOpen: ") for fault in faults)


@pytest.mark.parametrize(
    "value",
    [{"region": SECRET, "isOpen": SECRET}, {"region": 5, "secret": {"value": SECRET, "file": SECRET}}],
)
def test_a_fault_never_shows_a_value(value):
    faults = check_options(Entry, value)

    assert faults
    assert SECRET not in " ".join(faults)


@pytest.mark.parametrize("secret", [{}, {"value": "a", "file": "b"}])
def test_a_secret_is_a_value_or_a_file(secret):
    assert check_options(Entry, {"region": "eu", "secret": secret}) == ["secret: give either value or file"]


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
