from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.comparison.profile import ProfileError, parse_profile, read_profile
from tests.cases import each_case

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
GOOD = {
    "shareCredentialsVersion": 1,
    "endpoint": "https://example.com/delta-sharing/",
    "bearerToken": "t0k3n",
}


def parse(**changes: object):
    return parse_profile(json.dumps({**GOOD, **changes}), NOON)


def test_a_profile_gives_endpoint_and_token():
    profile = parse(expirationTime="2026-11-16T12:00:00.1Z")
    assert profile.endpoint == "https://example.com/delta-sharing"
    assert profile.bearer_token == "t0k3n"


def test_a_profile_does_not_print_its_token():
    assert "t0k3n" not in repr(parse())


@each_case("version", [2, 0, None, "1", True])
def test_another_version_is_refused(version):
    with pytest.raises(ProfileError, match="shareCredentialsVersion"):
        parse(shareCredentialsVersion=version)


@each_case(
    "endpoint",
    [
        "",
        None,
        7,
        "example.com",
        "ftp://example.com",
        "https://",
        "https://u:p@example.com",
        "http://h:x/",
        "http://[::1",
    ],
)
def test_an_endpoint_that_is_no_address_is_refused_without_being_shown(endpoint):
    with pytest.raises(ProfileError, match="endpoint") as caught:
        parse(endpoint=endpoint)
    assert "u:p" not in str(caught.value)


@each_case("token", ["", None, 7, "a b", "a\nb", "tök"])
def test_a_token_that_no_header_carries_is_refused_without_being_shown(token):
    with pytest.raises(ProfileError, match="bearerToken") as caught:
        parse(bearerToken=token)
    assert not token or str(token) not in str(caught.value)


@each_case(
    "time", ["2026-11-16T12:00:00Z", "2021-11-12T00:12:29.0Z", "2026-11-16T13:00:00+02:00", "2026-11-16"]
)
def test_an_expired_profile_is_refused(time):
    with pytest.raises(ProfileError, match="expired at"):
        parse(expirationTime=time)


@each_case("time", [None, "", "2026-11-16T12:00:01Z", "9999-12-31T23:59:59Z"])
def test_a_profile_that_has_not_expired_is_taken(time):
    assert parse(expirationTime=time)


def test_an_expiration_that_is_no_time_is_refused():
    with pytest.raises(ProfileError, match="not a time"):
        parse(expirationTime="soon")


@pytest.mark.parametrize(("text", "reason"), [("nope", "not JSON"), ("[1]", "not a JSON object")])
def test_a_file_that_is_no_profile_is_refused(text, reason):
    with pytest.raises(ProfileError, match=reason):
        parse_profile(text, NOON)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda part: st.lists(part) | st.dictionaries(st.sampled_from([*GOOD, "expirationTime"]), part),
    )
)
def test_whatever_a_file_holds_it_is_a_profile_or_an_error(content):
    try:
        profile = parse_profile(json.dumps(content), NOON)
    except ProfileError:
        return
    assert profile.endpoint.startswith("http")


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ProfileError, match=r"nowhere\.share: No such file"):
        read_profile(tmp_path / "nowhere.share", NOON)


def test_a_file_that_is_no_text_is_named(tmp_path: Path):
    (tmp_path / "a.share").write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileError, match=r"a\.share: it is not UTF-8"):
        read_profile(tmp_path / "a.share", NOON)


def test_a_file_with_a_fault_is_named(tmp_path: Path):
    (tmp_path / "a.share").write_text("{}")
    with pytest.raises(ProfileError, match=r"a\.share cannot be used: shareCredentialsVersion is missing"):
        read_profile(tmp_path / "a.share", NOON)
