from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from sluice_recipient.errors import ProfileError
from sluice_recipient.profile import parse_profile, read_profile

from tests.cases import each_case
from tests.fakes.recipient_transport import ENDPOINT, NOON, PROFILE, TOKEN


def test_a_profile_has_an_endpoint_without_the_last_slash():
    profile = parse_profile(PROFILE)

    assert (profile.endpoint, profile.bearer_token) == (ENDPOINT, TOKEN)


def test_the_token_is_not_shown():
    assert TOKEN not in repr(parse_profile(PROFILE))


@each_case(
    ("change", "said"),
    [
        ({"shareCredentialsVersion": 2}, "shareCredentialsVersion is 2"),
        ({"shareCredentialsVersion": True}, "only 1 is supported"),
        ({"shareCredentialsVersion": None}, "missing"),
        ({"endpoint": "ftp://gateway.example"}, "endpoint"),
        ({"endpoint": "https://user@gateway.example"}, "endpoint"),
        ({"endpoint": "https://gateway.example:0"}, "endpoint"),
        ({"endpoint": 7}, "endpoint"),
        ({"bearerToken": ""}, "no bearerToken"),
        ({"bearerToken": "two\nlines"}, "no header can carry"),
        ({"expirationTime": "soon"}, "expirationTime"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(change, said):
    with pytest.raises(ProfileError, match=said):
        parse_profile(PROFILE | change)


@pytest.mark.parametrize(
    "written", ["2030-01-01T12:00:00Z", "2030-01-01T12:00:00", "2030-01-01T13:00:00+01:00"]
)
def test_an_expired_profile_is_refused(written):
    profile = parse_profile(PROFILE | {"expirationTime": written})

    profile.check(NOON - timedelta(seconds=1))
    with pytest.raises(ProfileError, match="ask for a new one"):
        profile.check(NOON)


@pytest.mark.parametrize("expiration", [None, "2031-01-01T00:00:00+00:00"])
def test_a_profile_survives_its_json(expiration):
    profile = parse_profile(PROFILE | {"expirationTime": expiration})

    assert parse_profile(profile.to_json()) == profile


def test_a_profile_without_expiration_never_expires():
    parse_profile(PROFILE).check(datetime.max.replace(tzinfo=UTC))


def test_a_file_is_read(tmp_path):
    file = tmp_path / "reader.share"
    file.write_text(json.dumps(PROFILE))

    assert read_profile(file).endpoint == ENDPOINT


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"bearerToken": "a secret",'])
def test_a_file_that_is_no_profile_is_refused_by_its_name_and_not_quoted(tmp_path, content):
    file = tmp_path / "reader.share"
    file.write_bytes(content)

    with pytest.raises(ProfileError, match=r"reader\.share") as raised:
        read_profile(file)
    assert "a secret" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProfileError, match=r"nothing\.share: No such file"):
        read_profile(tmp_path / "nothing.share")
