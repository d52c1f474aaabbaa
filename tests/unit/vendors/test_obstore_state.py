"""How state is written to a store that refuses."""

from __future__ import annotations

import obstore
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError
from obstore.store import MemoryStore

from gateway.domain.location import parse_location
from gateway.errors import Unavailable
from vendors.obstore_state import ObstoreState

REFUSED = PermissionDeniedError(
    "Server returned non-2xx status code: 403 Forbidden: <Error><Code>AccessDenied</Code></Error>"
)


@pytest.fixture
def state():
    return ObstoreState(MemoryStore(), parse_location("s3://lake/state"))


@pytest.fixture
def errors(monkeypatch):
    """Return a list of errors that the next writes raise, one each, before the store is reached."""
    errors: list[Exception] = []
    put = obstore.put_async

    async def put_or_raise(*arguments, **options):
        if errors:
            raise errors.pop(0)
        return await put(*arguments, **options)

    monkeypatch.setattr(obstore, "put_async", put_or_raise)
    return errors


async def test_create_that_is_refused_for_a_moment_is_tried_again(state, errors):
    errors += [REFUSED] * 3

    assert await state.create("a", b"content")
    assert (await state.get("a")).content == b"content"


async def test_create_that_is_always_refused_fails(state, errors):
    errors += [REFUSED] * 10

    with pytest.raises(Unavailable):
        await state.create("a", b"content")
    assert await state.get("a") is None


async def test_create_that_fails_is_not_tried_again(state, errors):
    """It may have been written: a second try would find its own key and take it for another writer's."""
    errors += [GenericError("no answer")]

    with pytest.raises(Unavailable):
        await state.create("a", b"content")
    assert await state.get("a") is None


async def test_replace_that_is_refused_is_not_taken_for_a_lost_condition(state, errors):
    tag = await state.create("a", b"content")
    errors += [REFUSED]

    with pytest.raises(Unavailable):
        await state.replace("a", b"other", tag)
