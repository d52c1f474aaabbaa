from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vendors.s3.cutter import S3Cutter
from vendors.s3.profile import PROFILES


@pytest.mark.parametrize("profile", PROFILES)
async def test_no_store_is_said_to_have_cut_off_anybody(profile):
    cut = await S3Cutter(PROFILES[profile]).cut_off("acme", datetime(2026, 5, 1, tzinfo=UTC))

    assert not cut.done
    assert cut.words


async def test_minio_has_a_command():
    cut = await S3Cutter(PROFILES["minio"]).cut_off("acme", datetime(2026, 5, 1, tzinfo=UTC))

    assert "mc admin accesskey sts-revoke" in cut.words
