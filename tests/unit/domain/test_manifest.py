"""What is kept of a showing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.manifest import ManifestError, Retired, decode_manifest, fingerprint_of, manifest_key
from tests.cases import each_case
from tests.showings import NOON, ROOT, make_showing, make_view, manifest_of

SHOWING = make_showing()


def test_a_manifest_survives_being_kept():
    manifest = manifest_of(SHOWING)
    kept = replace(
        manifest,
        retired=(Retired(name="zero", at=NOON - timedelta(hours=1)),),
        hidden_from=NOON + timedelta(hours=1),
    )

    assert decode_manifest(kept.encode(), SHOWING) == kept


def test_what_is_shown_lies_two_steps_below_the_views_own_place():
    place = manifest_of(SHOWING).materialisation(ROOT).location

    assert place.text == f"{ROOT.text}/{SHOWING.fingerprint}/first"


@each_case(
    "name", ["", ".", "..", "../other", "a/b", "a\\b", "_delta_log", "-x", "a" * 65, "a b", "a%2fb", None, 3]
)
def test_no_name_of_a_directory_leads_out_of_the_showings_own(name):
    value = json.loads(manifest_of(SHOWING).encode()) | {"name": name}

    with pytest.raises(ManifestError):
        decode_manifest(json.dumps(value).encode(), SHOWING)


@each_case("content", [b"", b"{", b"[]", b"null", b'{"format":2}', b"\xff", b"[" * 5000])
def test_what_is_no_manifest_is_refused(content):
    with pytest.raises(ManifestError):
        decode_manifest(content, SHOWING)


@each_case("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59+00:00", "12:00", 1e999])
@each_case("damaged", ["refreshedAt", "hiddenFrom", "retired"])
def test_a_manifest_with_times_that_cannot_be_reckoned_with_is_refused(damaged, at):
    value = json.loads(manifest_of(SHOWING).encode())
    value[damaged] = [{"name": "zero", "at": at}] if damaged == "retired" else at

    with pytest.raises(ManifestError):
        decode_manifest(json.dumps(value).encode(), SHOWING)


def test_the_manifest_of_another_showing_is_refused():
    other = make_showing(make_view("region"), "ann")

    with pytest.raises(ManifestError):
        decode_manifest(manifest_of(other).encode(), SHOWING)


def test_a_manifest_is_hidden_from_its_time_on():
    hidden = replace(manifest_of(SHOWING), hidden_from=NOON)

    assert not manifest_of(SHOWING).is_hidden(NOON)
    assert not hidden.is_hidden(NOON - timedelta(seconds=1))
    assert hidden.is_hidden(NOON)


@each_case("key", ["views/x.json", "views/", f"jobs/{'a' * 32}.json", f"views/{'A' * 32}.json"])
def test_a_key_tells_whose_manifest_it_has(key):
    assert fingerprint_of(manifest_key(SHOWING.fingerprint)) == SHOWING.fingerprint
    assert fingerprint_of(key) is None
