from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

from vendors.s3.profile import PROFILES


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_does_not_change(profile):
    with pytest.raises(FrozenInstanceError):
        PROFILES[profile].escapes_wildcards = True  # type: ignore[misc]


@pytest.mark.parametrize("profile", PROFILES)
def test_no_profile_is_believed_to_escape_wildcards(profile):
    # Tried on SeaweedFS and MinIO, where an escaped path opens nothing; not known of Ceph.
    assert not PROFILES[profile].escapes_wildcards


@pytest.mark.parametrize("profile", PROFILES)
def test_lives_lie_within_what_the_token_services_give(profile):
    assert timedelta(minutes=15) == PROFILES[profile].shortest
    assert PROFILES[profile].longest <= timedelta(days=7)
