"""What every state store does, whatever is behind it."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

import pytest

from gateway.errors import InvalidArgument

NO_KEYS = (
    *("", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "../a", "a/.", "a/..", "..."),
    *("a b", "a%2Fb", "a\\b", "a\0b", "a\nb", "é", "a*", "a?", "~", "a:b"),
    *(".state-lock", "a/.state-new-1", "a" * 201, "/".join(["a" * 100] * 9)),
)
ODD_KEYS = ("a", "A", "a=1/b-2/c_3.json", ".a", "..a", "a..", "-", "a/_SUCCESS", "x/.part-0.parquet.crc")
LARGE = 24 * 1024 * 1024


class ConditionsContract:
    """Tests over a fixture ``store``: a state store with nothing in it."""

    async def test_nothing_is_there_at_first(self, store):
        assert await store.get("jobs/a") is None
        assert await store.get_range("jobs/a", 0, 10) is None
        assert await store.list("") == []
        assert await store.list("jobs/") == []
        assert await store.replace("jobs/a", b"new", "any") is None
        await store.delete("jobs/a")

    async def test_what_was_created_is_read_with_its_tag(self, store):
        tag = await store.create("jobs/a", b"one")

        entry = await store.get("jobs/a")
        assert (entry.content, entry.tag) == (b"one", tag)

    async def test_second_create_changes_nothing(self, store):
        await store.create("jobs/a", b"one")

        assert await store.create("jobs/a", b"two") is None
        assert await store.create("jobs/a", b"one") is None
        assert (await store.get("jobs/a")).content == b"one"

    async def test_replace_takes_the_tag_of_what_is_there_and_no_other(self, store):
        first = await store.create("jobs/a", b"one")
        second = await store.replace("jobs/a", b"two", first)

        assert second not in (None, first)
        assert await store.replace("jobs/a", b"three", first) is None
        assert (await store.get("jobs/a")).content == b"two"
        assert await store.replace("jobs/a", b"three", (await store.get("jobs/a")).tag)
        assert (await store.get("jobs/a")).content == b"three"

    async def test_tag_of_one_key_opens_no_other(self, store):
        tag = await store.create("a", b"one")
        await store.create("b", b"another")

        assert await store.replace("b", b"two", tag) is None

    async def test_deleted_key_is_free_again(self, store):
        tag = await store.create("jobs/a", b"one")
        await store.delete("jobs/a")
        await store.delete("jobs/a")

        assert await store.get("jobs/a") is None
        assert await store.replace("jobs/a", b"two", tag) is None
        assert await store.list("") == []
        assert await store.create("jobs/a", b"two")

    async def test_ranges_are_what_is_there_of_them(self, store):
        await store.create("a", b"0123456789")

        assert await store.get_range("a", 0, 10) == b"0123456789"
        assert await store.get_range("a", 3, 4) == b"3456"
        assert await store.get_range("a", 8, 100) == b"89"
        assert await store.get_range("a", 10, 1) == b""
        assert await store.get_range("a", 1000, 1) == b""
        assert await store.get_range("a", 2, 0) == b""

    async def test_empty_content_is_content(self, store):
        tag = await store.create("a", b"")

        assert (await store.get("a")).content == b""
        assert await store.get_range("a", 0, 5) == b""
        assert [found.size for found in await store.list("")] == [0]
        assert await store.create("a", b"x") is None
        assert await store.replace("a", b"x", tag)

    async def test_one_of_many_creators_wins(self, store):
        for number in range(3):
            key = f"jobs/{number}"
            answers = await asyncio.gather(*(store.create(key, f"{i}".encode()) for i in range(8)))

            (winner,) = [i for i, tag in enumerate(answers) if tag is not None]
            entry = await store.get(key)
            assert (entry.content, entry.tag) == (f"{winner}".encode(), answers[winner])

    async def test_one_of_many_replacers_wins_each_round(self, store):
        tag = await store.create("a", b"start")
        for number in range(3):
            answers = await asyncio.gather(
                *(store.replace("a", f"{number} {i}".encode(), tag) for i in range(8))
            )

            (winner,) = [i for i, answer in enumerate(answers) if answer is not None]
            assert (await store.get("a")).content == f"{number} {winner}".encode()
            tag = answers[winner]

    async def test_counters_of_many_writers_lose_no_step(self, store):
        await store.create("count", b"0")

        async def count() -> None:
            for _ in range(3):
                while True:
                    entry = await store.get("count")
                    if await store.replace("count", b"%d" % (int(entry.content) + 1), entry.tag):
                        break

        await asyncio.gather(*(count() for _ in range(6)))

        assert (await store.get("count")).content == b"18"


class StateStoreContract(ConditionsContract):
    """The whole of it: long values, listings, odd keys."""

    async def test_large_content_is_kept_whole(self, store):
        content, other = secrets.token_bytes(LARGE), secrets.token_bytes(LARGE)
        tag = await store.create("a", content)

        assert (await store.get("a")).content == content
        assert await store.get_range("a", LARGE - 3, 10) == content[-3:]
        assert await store.replace("a", other, tag)
        assert (await store.get("a")).content == other

    async def test_list_is_in_the_order_of_the_keys(self, store):
        keys = ["a", "b-c", "b.c", "b/c", "b/c.d", "b/d/e", "b0", "ba/c", "B/c"]
        for key in keys:
            await store.create(key, key.encode())

        assert [found.key for found in await store.list("")] == sorted(keys)
        assert [found.key for found in await store.list("b/")] == ["b/c", "b/c.d", "b/d/e"]
        assert [found.size for found in await store.list("b/")] == [3, 5, 5]
        assert await store.list("b/c/") == []

    async def test_list_goes_on_after_a_key(self, store):
        keys = sorted(f"queue/{kind}/{number:02}" for kind in ("a", "b", "b-c") for number in range(5))
        for key in keys:
            await store.create(key, b"")
        found, after = [], ""

        while page := await store.list("queue/", after=after, limit=4):
            assert len(page) <= 4
            found += [one.key for one in page]
            after = found[-1]

        assert found == keys
        assert [one.key for one in await store.list("queue/", after="queue/a/02x")] == keys[3:]
        assert len(await store.list("queue/", after="a")) == len(keys)
        assert await store.list("queue/", after="r") == []
        assert await store.list("queue/", limit=0) == []

    async def test_long_list_is_whole(self, store):
        keys = [f"many/{number:05}" for number in range(1100)]
        for start in range(0, len(keys), 50):
            await asyncio.gather(*(store.create(key, b"") for key in keys[start : start + 50]))

        assert [found.key for found in await store.list("many/", limit=5000)] == keys
        assert len(await store.list("many/")) == 1000

    async def test_times_are_of_now(self, store):
        await store.create("a", b"")

        (found,) = await store.list("")
        assert abs(found.modified_at - datetime.now(UTC)) < timedelta(minutes=1)

    @pytest.mark.parametrize("key", ODD_KEYS)
    async def test_odd_key_is_a_key(self, store, key):
        tag = await store.create(key, b"one")

        assert await store.replace(key, b"two", tag)
        assert (await store.get(key)).content == b"two"
        assert [found.key for found in await store.list("")] == [key]
        await store.delete(key)
        assert await store.list("") == []

    @pytest.mark.parametrize("key", NO_KEYS)
    async def test_what_is_no_key_is_refused(self, store, key):
        for call in (
            store.get(key),
            store.get_range(key, 0, 1),
            store.create(key, b""),
            store.replace(key, b"", "tag"),
            store.delete(key),
        ):
            with pytest.raises(InvalidArgument):
                await call

    @pytest.mark.parametrize("prefix", ["a", "/", "../", "a//", "a/../"])
    async def test_what_is_no_prefix_is_refused(self, store, prefix):
        with pytest.raises(InvalidArgument):
            await store.list(prefix)

    async def test_reader_sees_whole_values_only(self, store):
        size = 300_000
        tag = await store.create("a", b"0" * size)

        async def write() -> None:
            nonlocal tag
            for number in range(1, 10):
                tag = await store.replace("a", b"%d" % number * size, tag)

        writing = asyncio.create_task(write())
        while not writing.done():
            content = (await store.get("a")).content
            assert len(content) == size
            assert len(set(content)) == 1
        await writing

    async def test_create_and_delete_do_not_undo_each_other(self, store):
        """The directory of a key may go with its neighbour at any moment."""

        async def churn(name: str) -> None:
            for _ in range(15):
                assert await store.create(f"deep/down/{name}", b"")
                await store.delete(f"deep/down/{name}")

        await asyncio.gather(*(churn(f"{i}") for i in range(6)))

        assert await store.list("") == []
