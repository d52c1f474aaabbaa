from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.cache.key import encode, marks_of, scope_key, window_key
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON, scope

FIELDS = st.lists(st.binary(max_size=6), max_size=4)


@given(FIELDS, FIELDS)
def test_no_other_fields_give_the_same_bytes(one, other):
    assert (encode(*one) == encode(*other)) == (one == other)


def test_two_spellings_of_a_location_are_one_key():
    keys = {scope_key(b"f", scope(path)) for path in ("s3://lake/t", "s3a://lake/t/", "s3n://lake/t")}
    assert len(keys) == 1


def test_everything_that_a_credential_depends_on_is_in_the_key():
    scopes = [
        scope(),
        scope("s3://lake/t2"),
        scope("gs://lake/t"),
        scope(recipient="bob"),
        scope(recipient=""),
        scope(life=HOUR + MINUTE),
        scope(life=HOUR + timedelta(microseconds=1)),
        scope(revoked_at=NOON),
        scope(revoked_at=NOON + timedelta(microseconds=1)),
    ]
    keys = {scope_key(fingerprint, each) for each in scopes for fingerprint in (b"f", b"g")}
    assert len(keys) == 2 * len(scopes)


def test_each_window_has_a_key_of_its_own():
    key = scope_key(b"f", scope())
    assert len({window_key(key, NOON), window_key(key, NOON + MINUTE), key}) == 3


def test_a_credential_that_names_nobody_is_dropped_with_its_storage_only():
    assert len(marks_of("lake", "")) == 1
    assert marks_of("lake", "ann")[0] == marks_of("lake", "")[0]
    # A recipient may be called what a storage is called.
    assert len({*marks_of("lake", "lake")}) == 2
