from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.demo.checkpoint import to_checkpoint
from gateway.errors import Unsupported
from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import FILES, read_checkpoint, read_commits
from gateway.services.snapshot.state.replay import advance, load
from tests.builders import PLAIN_PROTOCOL, STARTED_AT, add, remove

_ANCHOR = LogFile("anchor", 1, STARTED_AT)
_FIRST = [
    {"protocol": PLAIN_PROTOCOL},
    {"metaData": {"id": "t", "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
]

# A commit: some files added with a size, others removed, none both.
_COMMITS = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.integers(0, 1000), max_size=5), max_size=8
)

_quick = settings(deadline=None, max_examples=30)


def commit(*actions):
    return read_commits([("commit.json", to_lines(actions))])


def to_lines(actions):
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def commit_of(changes):
    return commit(*(remove(path) if size is None else add(path, size=size) for path, size in changes.items()))


def batch_of(history):
    """Read all commits at once."""
    contents = [
        [remove(path) if size is None else add(path, size=size) for path, size in c.items()] for c in history
    ]
    return read_commits([(f"{n}.json", to_lines(actions)) for n, actions in enumerate(contents)])


def live_of(snapshot):
    return [(row["path"], row["size"]) for row in snapshot.files.to_dicts()]


def replayed(model, changes):
    """Apply a commit to a plain dictionary, which keeps the order of what is appended."""
    for path, size in changes.items():
        model.pop(path, None)
        if size is not None:
            model[path] = size
    return model


def test_files_are_live_from_their_add_to_their_remove():
    snapshot = load([], [commit(*_FIRST), commit(add("a"), add("b")), commit(remove("a"))], 2, _ANCHOR)

    assert live_of(snapshot) == [("b", 1)]
    assert (snapshot.version, snapshot.num_files, snapshot.size) == (2, 1, 1)


def test_a_file_that_a_commit_removes_and_adds_is_live():
    snapshot = load([], [commit(*_FIRST, add("a")), commit(remove("a"), add("a", size=2))], 1, _ANCHOR)

    assert live_of(snapshot) == [("a", 2)]


def test_a_file_added_twice_is_there_once_as_it_was_last():
    snapshot = load([], [commit(*_FIRST, add("a"), add("b")), commit(add("a", size=9))], 1, _ANCHOR)

    assert live_of(snapshot) == [("b", 1), ("a", 9)]


def test_the_last_metadata_and_protocol_hold():
    renamed = {"metaData": {"id": "t", "name": "new", "schemaString": "{}"}}

    snapshot = load(
        [], [commit(*_FIRST), commit(renamed), commit({"protocol": {"minReaderVersion": 2}})], 2, _ANCHOR
    )

    assert snapshot.metadata.name == "new"
    assert snapshot.protocol.min_reader_version == 2


@pytest.mark.parametrize("first", [_FIRST[:1], _FIRST[1:], []])
def test_a_log_without_protocol_or_metadata_is_damaged(first):
    with pytest.raises(Unsupported, match="no protocol or no metaData"):
        load([], [commit(*first, add("a"))], 0, _ANCHOR)


def test_an_empty_table_has_the_columns_of_any_other():
    snapshot = load([], [commit(*_FIRST)], 0, _ANCHOR)

    assert dict(snapshot.files.schema) == FILES
    assert (snapshot.size, snapshot.num_files) == (0, 0)


def test_a_commit_that_changes_no_file_leaves_them_as_they_are():
    before = load([], [commit(*_FIRST, add("a"))], 0, _ANCHOR)

    after = advance(before, [commit({"commitInfo": {}})], 1, _ANCHOR)

    assert live_of(after) == live_of(before)


@_quick
@given(_COMMITS)
def test_a_replay_agrees_with_a_dictionary(history):
    model: dict[str, int] = {}
    for changes in history:
        replayed(model, changes)

    snapshot = load([], [commit(*_FIRST), *map(commit_of, history)], len(history), _ANCHOR)

    assert live_of(snapshot) == list(model.items())


@_quick
@given(_COMMITS.filter(bool), _COMMITS.filter(bool))
def test_commits_that_are_read_at_once_come_to_the_same(earlier, later):
    base = load([], [commit(*_FIRST, *(add(path) for path in "abcd"))], 0, _ANCHOR)

    at_once = load([], [commit(*_FIRST), batch_of(earlier), batch_of(later)], 1, _ANCHOR)
    one_by_one = load([], [commit(*_FIRST), *map(commit_of, [*earlier, *later])], 1, _ANCHOR)
    assert live_of(at_once) == live_of(one_by_one)
    assert live_of(advance(base, [batch_of(earlier)], 1, _ANCHOR)) == live_of(
        advance(base, [commit_of(changes) for changes in earlier], 1, _ANCHOR)
    )


@_quick
@given(_COMMITS, st.integers(1, 4), st.data())
def test_a_checkpoint_on_the_way_changes_nothing(history, parts, data):
    cut = data.draw(st.integers(0, len(history)))
    model: dict[str, int] = {}
    for changes in history[:cut]:
        replayed(model, changes)
    state: list[Any] = [*_FIRST, *(add(path, size=size) for path, size in model.items()), remove("tombstone")]
    checkpoint = [read_checkpoint("c.parquet", content) for content in to_checkpoint(state, parts)]
    rest = [commit_of(changes) for changes in history[cut:]]

    whole = load([], [commit(*_FIRST), *map(commit_of, history)], len(history), _ANCHOR)
    short = load(checkpoint, rest, len(history), _ANCHOR)

    assert live_of(short) == live_of(whole)
    assert (short.protocol, short.metadata) == (whole.protocol, whole.metadata)


@_quick
@given(_COMMITS)
def test_going_commit_by_commit_changes_nothing(history):
    snapshot = load([], [commit(*_FIRST)], 0, _ANCHOR)
    for version, changes in enumerate(history, start=1):
        snapshot = advance(snapshot, [commit_of(changes)], version, _ANCHOR)

    whole = load([], [commit(*_FIRST), *map(commit_of, history)], len(history), _ANCHOR)

    assert live_of(snapshot) == live_of(whole)
    assert snapshot.version == whole.version


@_quick
@given(_COMMITS)
def test_files_that_stay_keep_their_order(history):
    snapshot = load([], [commit(*_FIRST, *(add(path) for path in "abcdefgh"))], 0, _ANCHOR)

    after = advance(snapshot, [commit_of(changes) for changes in history], len(history), _ANCHOR)

    touched = {path for changes in history for path in changes}
    kept = [path for path in snapshot.files["path"] if path not in touched]
    assert after.files["path"].to_list()[: len(kept)] == kept


def test_what_was_removed_takes_no_memory_for_long():
    batch = [f"f{number}" for number in range(1500)]
    snapshot = load([], [commit(*_FIRST, add("stays"), *map(add, batch))], 0, _ANCHOR)

    emptied = advance(snapshot, [commit(*map(remove, batch))], 1, _ANCHOR)

    assert live_of(emptied) == [("stays", 1)]
    assert dict(emptied.files.schema) == FILES
    assert emptied.dropped == 0


def test_what_was_removed_counts_until_it_is_given_back():
    snapshot = load([], [commit(*_FIRST, add("a"), add("b"), add("c")), commit(remove("a"))], 1, _ANCHOR)
    assert (snapshot.num_files, snapshot.dropped) == (2, 1)

    after = advance(snapshot, [batch_of([{"d": 1, "e": 1}, {"b": None, "d": None}])], 2, _ANCHOR)

    assert (after.num_files, after.dropped) == (2, 3)
    assert after.memory > snapshot.memory


def test_many_refreshes_do_not_leave_many_chunks():
    snapshot = load([], [commit(*_FIRST)], 0, _ANCHOR)
    for version in range(1, 100):
        snapshot = advance(snapshot, [commit(add(f"f{version}"))], version, _ANCHOR)

    assert snapshot.num_files == 99
    assert snapshot.files.n_chunks() <= 32
