from __future__ import annotations

import base64
import logging
from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from tests.cases import each_case
from tests.unit.vendors.azure.doubles import NOON, FakeClock
from vendors.azure.account_key import AccountKeys, decode_key
from vendors.options import SecretOptions

FIRST = base64.b64encode(b"first" * 12).decode()
SECOND = base64.b64encode(b"second" * 10).decode()


def keys(clock=None, **given) -> AccountKeys:
    return AccountKeys("lake", SecretOptions.model_validate(given), clock or FakeClock())


async def test_key_is_the_one_that_is_given():
    key = await keys(value=FIRST).get()

    assert (key.text, key.secret, key.read_at) == (FIRST, b"first" * 12, NOON)
    assert key.fields == {}


async def test_file_is_read_each_time_as_it_may_have_been_replaced(tmp_path):
    clock, file = FakeClock(), tmp_path / "key"
    file.write_text(f"{FIRST}\n")
    made = keys(clock, file=str(file))
    assert (await made.get()).text == FIRST
    file.write_text(f" {SECOND} \r\n")
    clock.now += timedelta(seconds=1)

    key = await made.get()
    assert (key.text, key.read_at) == (SECOND, NOON + timedelta(seconds=1))


async def test_file_that_is_gone_is_named_in_the_log_and_not_to_the_recipient(tmp_path, caplog):
    file = tmp_path / "key"
    with pytest.raises(Unavailable) as raised:
        await keys(file=str(file)).get()

    assert str(file) in caplog.text
    assert str(file) not in raised.value.message


@pytest.mark.parametrize("content", [b"", b"\n", b"not base64!", b"\xff\xfe\x00", "schlüssel".encode()])
async def test_what_is_no_key_is_refused_and_not_shown(tmp_path, caplog, content):
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(Unavailable) as raised:
        await keys(file=str(file)).get()

    assert "lake: its account key cannot be used" in caplog.text
    assert "base64!" not in caplog.text
    assert raised.value.__cause__ is None


async def test_key_is_shown_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    key = await keys(value=FIRST).get()

    assert FIRST not in repr(key)
    assert "first" not in repr(key)
    assert FIRST not in caplog.text


@each_case(("text", "secret"), [("a2V5", b"key"), (" a2V5\n", b"key"), ("", None), ("k", None)])
def test_key_is_decoded_or_none(text, secret):
    assert decode_key(text) == secret
