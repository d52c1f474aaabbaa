from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.cache.vault import Vault
from gateway.domain.key import Key, Keys
from tests.unit.adapters.cache.doubles import KEYS

OLD = KEYS.current
NEW = Key(id="k2-longer", secret=b"n" * 32)
VAULT = Vault(KEYS)
ROTATED = Vault(Keys(current=NEW, previous=OLD))


@given(st.binary(), st.binary())
def test_a_value_opens_under_its_own_key(key, value):
    assert VAULT.open(key, VAULT.seal(key, value)) == value


@given(st.binary(), st.binary(), st.binary())
def test_a_value_that_was_moved_to_another_key_does_not_open(key, other, value):
    if key != other:
        assert VAULT.open(other, VAULT.seal(key, value)) is None


@given(st.binary(max_size=80))
def test_what_we_did_not_seal_does_not_open(garbage):
    assert VAULT.open(b"key", garbage) is None


@given(st.data())
def test_a_value_with_a_changed_or_missing_byte_does_not_open(data):
    sealed = VAULT.seal(b"key", b"secret")
    place = data.draw(st.integers(min_value=0, max_value=len(sealed) - 1))
    flipped = bytes([sealed[place] ^ data.draw(st.integers(min_value=1, max_value=255))])

    assert VAULT.open(b"key", sealed[:place] + flipped + sealed[place + 1 :]) is None
    assert VAULT.open(b"key", sealed[:place]) is None


def test_a_value_of_another_format_does_not_open():
    sealed = VAULT.seal(b"key", b"secret")
    assert VAULT.open(b"key", b"\x02" + sealed[1:]) is None


def test_the_secret_is_not_in_the_value_and_no_two_values_are_alike():
    values = {VAULT.seal(b"key", b"secret") for _ in range(50)}
    assert len(values) == 50
    assert not any(b"secret" in value or b"key" in value for value in values)


def test_after_a_rotation_old_values_open_and_new_ones_are_sealed_anew():
    assert ROTATED.open(b"key", VAULT.seal(b"key", b"secret")) == b"secret"
    assert VAULT.open(b"key", ROTATED.seal(b"key", b"secret")) is None


def test_after_a_rotation_old_names_are_still_known():
    assert ROTATED.names(b"key") == (Vault(Keys(current=NEW)).name(b"key"), VAULT.name(b"key"))
    assert VAULT.names(b"key") == (VAULT.name(b"key"),)


def test_a_name_tells_nothing_of_its_key_and_fits_into_a_hash_tag():
    name = VAULT.name(b"ann s3://lake/t")
    assert name == VAULT.name(b"ann s3://lake/t")
    assert name != VAULT.name(b"ann s3://lake/u")
    assert len(name) == 24
    assert name.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("vault", [VAULT, ROTATED])
def test_keys_do_not_print(vault):
    assert "s" * 8 not in repr(vault)
