from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.vendors.gcp.google import NOON, SHARER
from vendors.gcp.cutter import GcpCutter


async def test_words_say_when_it_ends_and_what_ends_it_sooner():
    cut = await GcpCutter(bucket="lake", account=SHARER).cut_off("acme", NOON)

    assert not cut.done
    assert "acme" in cut.words
    assert "2026-11-16T13:00:01+00:00" in cut.words
    assert f"gcloud iam service-accounts disable {SHARER}" in cut.words
    assert "remove-iam-policy-binding gs://lake" in cut.words


async def test_unnamed_account_is_left_to_the_operator():
    cut = await GcpCutter(bucket="lake", account=None).cut_off("acme", NOON)

    assert "disable SERVICE_ACCOUNT_EMAIL" in cut.words


@pytest.mark.parametrize(("impersonates", "life"), [(False, timedelta(hours=1)), (True, None)])
async def test_token_lives_an_hour_unless_it_can_be_asked_for_less(impersonates, life):
    cutter = GcpCutter(bucket="lake", account=SHARER, impersonates=impersonates)
    assert (await cutter.cut_off("acme", NOON)).life == life
