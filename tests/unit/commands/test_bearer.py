from __future__ import annotations

import hashlib
import json
import stat
from datetime import UTC, datetime

import pytest

from gateway.commands.bearer import hash_of, new_token, profile_of, write_private


def test_tokens_are_long_and_never_the_same():
    tokens = {new_token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(token.startswith("slc_") and len(token) == 47 for token in tokens)


def test_a_hash_is_what_the_configuration_holds():
    assert hash_of("t") == f"sha256:{hashlib.sha256(b't').hexdigest()}"


def test_a_profile_is_of_the_version_that_every_client_reads():
    profile = json.loads(profile_of("https://x/y", "t", datetime(2030, 1, 2, tzinfo=UTC)))

    assert profile == {
        "shareCredentialsVersion": 1,
        "endpoint": "https://x/y",
        "bearerToken": "t",
        "expirationTime": "2030-01-02T00:00:00Z",
    }


def test_a_profile_without_an_end_does_not_name_one():
    assert "expirationTime" not in profile_of("https://x/y", "t", None)


def test_a_private_file_is_its_owners_alone_whatever_stood_there(tmp_path):
    file = tmp_path / "p"
    file.write_text("old")
    file.chmod(0o644)

    write_private(file, "new", replace=True)

    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_private_file_is_not_replaced_unasked(tmp_path):
    file = tmp_path / "p"
    file.write_text("old")

    with pytest.raises(FileExistsError):
        write_private(file, "new", replace=False)
    assert file.read_text() == "old"


@pytest.mark.parametrize("replace", [True, False])
def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, replace):
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "a.share", "half\ud800", replace=replace)
    assert list(tmp_path.iterdir()) == []
