from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.demo.checkpoint import to_checkpoint
from gateway.errors import Unsupported
from gateway.services.snapshot.log.actions import read_checkpoint, read_commits
from gateway.services.snapshot.log.schema import FILES
from gateway.services.snapshot.state import fold
from gateway.services.snapshot.state.replay import advance, load
from tests.builders import add, remove
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.state.snapshots import FIRST, commit, live_of, loaded, rows_of, to_lines

# A logical file: a path, with a deletion vector or without one.
_FILE = st.tuples(st.sampled_from("abcdef"), st.sampled_from([None, "v1", "v2"]))
# A commit: some files added with a size, others removed, none both.
_COMMITS = st.lists(st.dictionaries(_FILE, st.none() | st.integers(0, 2**53 - 1), max_size=5), max_size=8)

_quick = settings(max_examples=examples(0.25))
_slow = settings(max_examples=examples(0.15))


def vector(name):
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 3, "cardinality": 2}


def to_action(file, size):
    path, name = file
    if size is None:
        action = remove(path)
        if name:
            action["remove"]["deletionVector"] = vector(name)
        return action
    fields: dict[str, Any] = {"size": size, "stats": f'{{"numRecords":{size}}}', "tags": {"k": str(size)}}
    if name:
        fields["deletionVector"] = vector(name)
    return add(path, **fields)


def commit_of(changes):
    return commit(*(to_action(file, size) for file, size in changes.items()))


def batch_of(history):
    """Read all commits at once."""
    contents = [[to_action(file, size) for file, size in changes.items()] for changes in history]
    return read_commits([(f"{number}.json", to_lines(actions)) for number, actions in enumerate(contents)])


def replayed(history):
    """Apply commits to a plain dictionary, which keeps the order of what is appended."""
    model: dict[Any, int] = {}
    for changes in history:
        for file, size in changes.items():
            model.pop(file, None)
            if size is not None:
                model[file] = size
    return model


def files_of(snapshot):
    return [
        (
            (row["path"], row["deletionVector"]["pathOrInlineDv"] if row["deletionVector"] else None),
            row["size"],
        )
        for row in rows_of(snapshot)
    ]


def test_files_are_live_from_their_add_to_their_remove():
    snapshot = load(loaded(2, commit(*FIRST), commit(add("a"), add("b")), commit(remove("a"))))

    assert live_of(snapshot) == [("b", 1)]
    assert (snapshot.version, snapshot.files.num_files, snapshot.files.size) == (2, 1, 1)


def test_a_file_that_a_commit_removes_and_adds_is_live():
    snapshot = load(loaded(1, commit(*FIRST, add("a")), commit(remove("a"), add("a", size=2))))

    assert live_of(snapshot) == [("a", 2)]


def test_a_file_added_twice_is_there_once_as_it_was_last():
    snapshot = load(loaded(1, commit(*FIRST, add("a"), add("b")), commit(add("a", size=9))))

    assert live_of(snapshot) == [("b", 1), ("a", 9)]


def test_a_new_deletion_vector_takes_the_place_of_the_file_without():
    before = load(loaded(0, commit(*FIRST, add("a"), add("b"))))

    after = advance(before, loaded(1, commit(remove("a"), to_action(("a", "v1"), 1))))

    assert files_of(after) == [(("b", None), 1), (("a", "v1"), 1)]


def test_the_last_metadata_and_protocol_hold():
    renamed = {"metaData": {"id": "t", "name": "new", "schemaString": "{}"}}
    before = load(loaded(1, commit(*FIRST), commit(renamed)))

    after = advance(before, loaded(2, commit({"protocol": {"minReaderVersion": 2}})))

    assert (before.metadata.name, before.protocol.min_reader_version) == ("new", 1)
    assert (after.metadata.name, after.protocol.min_reader_version) == ("new", 2)


@pytest.mark.parametrize(
    ("first", "missing"), [(FIRST[:1], "metaData"), (FIRST[1:], "protocol"), ([], "protocol")]
)
def test_a_log_without_protocol_or_metadata_is_damaged(first, missing):
    with pytest.raises(Unsupported, match=f"it has no {missing} action"):
        load(loaded(0, commit(*first, add("a"))))


def test_an_empty_table_has_the_columns_of_any_other():
    snapshot = load(loaded(0, commit(*FIRST)))

    assert dict(snapshot.files.frame.schema) == FILES
    assert (snapshot.files.size, snapshot.files.num_files) == (0, 0)


def test_a_commit_that_changes_no_file_shares_them_all():
    before = load(loaded(0, commit(*FIRST, add("a"))))

    after = advance(before, loaded(1, commit({"commitInfo": {}})))

    assert after.version == 1
    assert after.files is before.files


def test_sizes_add_up_beyond_what_fits_into_64_bits():
    largest = 2**53 - 1
    paths = [f"f{number}" for number in range(2000)]
    snapshot = load(loaded(0, commit(*FIRST, *(add(path, size=largest) for path in paths))))
    assert snapshot.files.size == 2000 * largest > 2**63

    after = advance(snapshot, loaded(1, commit(remove("f7"))))

    assert after.files.size == 1999 * largest


@_quick
@given(_COMMITS)
def test_a_replay_agrees_with_a_dictionary(history):
    model = replayed(history)

    snapshot = load(loaded(len(history), commit(*FIRST), *map(commit_of, history)))

    assert files_of(snapshot) == list(model.items())
    assert (snapshot.files.num_files, snapshot.files.size) == (len(model), sum(model.values()))


@_quick
@given(_COMMITS.filter(bool), _COMMITS.filter(bool))
def test_commits_that_are_read_at_once_come_to_the_same(earlier, later):
    base = load(loaded(0, commit(*FIRST, *(add(path) for path in "abcd"))))

    at_once = load(loaded(1, commit(*FIRST), batch_of(earlier), batch_of(later)))
    one_by_one = load(loaded(1, commit(*FIRST), *map(commit_of, [*earlier, *later])))
    assert rows_of(at_once) == rows_of(one_by_one)
    assert rows_of(advance(base, loaded(1, batch_of(earlier)))) == rows_of(
        advance(base, loaded(1, *map(commit_of, earlier)))
    )


@_quick
@given(_COMMITS, st.integers(1, 4), st.data())
def test_a_checkpoint_on_the_way_changes_nothing(history, parts, data):
    cut = data.draw(st.integers(0, len(history)))
    state: list[Any] = [*FIRST, *(to_action(file, size) for file, size in replayed(history[:cut]).items())]
    contents = to_checkpoint([*state, remove("tombstone")], parts)
    name = "00000000000000000001.checkpoint.parquet"
    checkpoint = [read_checkpoint(name, content) for content in contents]
    rest = [commit_of(changes) for changes in history[cut:]]

    whole = load(loaded(len(history), commit(*FIRST), *map(commit_of, history)))
    short = load(loaded(len(history), *rest, checkpoint=checkpoint))

    assert files_of(short) == files_of(whole)
    assert (short.protocol, short.metadata) == (whole.protocol, whole.metadata)


@_slow
@given(_COMMITS, st.booleans())
def test_going_commit_by_commit_comes_to_the_same_at_every_version(history, folds_at_once):
    with pytest.MonkeyPatch.context() as patch:
        if folds_at_once:
            # As with a thousand files that are gone.
            patch.setattr(fold, "MIN_GONE", 0)
        snapshot = load(loaded(0, commit(*FIRST)))
        for version, changes in enumerate(history, start=1):
            before, rows = snapshot, rows_of(snapshot)
            snapshot = advance(snapshot, loaded(version, commit_of(changes)))

            whole = load(loaded(version, commit(*FIRST), *map(commit_of, history[:version])))
            assert rows_of(snapshot) == rows_of(whole)
            assert (snapshot.files.num_files, snapshot.files.size) == (
                whole.files.num_files,
                whole.files.size,
            )
            assert rows_of(before) == rows


@_slow
@given(_COMMITS)
def test_rows_are_only_appended_and_marked(history):
    snapshot = load(loaded(0, commit(*FIRST, *(add(path) for path in "abcdef"))))
    for version, changes in enumerate(history, start=1):
        before, snapshot = snapshot.files, advance(snapshot, loaded(version, commit_of(changes)))
        after = snapshot.files

        assert after.frame.head(before.height).equals(before.frame)
        assert after.num_files == (after.height if after.live is None else after.live.sum())
        if before.live is not None:
            assert after.live is not None
            # What is gone does not come back: it is added anew at the end.
            assert not (after.live.head(before.height) & ~before.live).any()


def test_parsed_statistics_stay_beside_their_rows():
    part = commit(*FIRST, add("a"), add("b"))
    parsed = pl.Series("stats_parsed", [{"numRecords": 1}, {"numRecords": 2}])
    with_parsed = type(part)(
        files=part.files, removed=part.removed, protocol=part.protocol, metadata=part.metadata, parsed=parsed
    )
    other = commit(add("c"))

    snapshot = load(loaded(1, commit(remove("a"), add("d")), checkpoint=[with_parsed, other]))

    assert snapshot.files.parsed is not None
    assert snapshot.files.frame["path"].to_list() == ["a", "b", "c", "d"]
    assert snapshot.files.parsed.struct.field("numRecords").to_list() == [1, 2, None, None]


def test_parsed_statistics_of_another_type_than_the_first_part_has_are_done_without():
    parts = [
        replace(
            read_checkpoint("c", to_checkpoint([*FIRST, add(path)])[0]),
            parsed=pl.Series("stats_parsed", [{"numRecords": 1, **more}]),
        )
        for path, more in (("a", {}), ("b", {"tightBounds": True}), ("c", {}))
    ]

    snapshot = load(loaded(1, checkpoint=parts))

    assert snapshot.files.parsed is not None
    assert snapshot.files.parsed.struct.field("numRecords").to_list() == [1, None, 1]


def test_versions_that_grew_from_the_same_have_columns_of_their_own():
    base = load(loaded(0, commit(*FIRST, add("a"))))
    grown = [advance(base, loaded(1, commit(add(path)))).files for path in ("b", "c")]

    def made(files):
        def make(keys, offset, length):
            return {key: files.frame.slice(offset, length).select("path") for key in keys}

        return files.columns.get(["key"], files.height, make)["key"]["path"].to_list()

    assert [made(files) for files in (base.files, *grown)] == [["a"], ["a", "b"], ["a", "c"]]


def test_what_was_removed_takes_no_memory_for_long():
    batch = [f"f{number}" for number in range(1500)]
    snapshot = load(loaded(0, commit(*FIRST, add("stays"), *map(add, batch))))

    emptied = advance(snapshot, loaded(1, commit(*map(remove, batch))))

    assert live_of(emptied) == [("stays", 1)]
    assert dict(emptied.files.frame.schema) == FILES
    assert (emptied.files.height, emptied.files.dropped) == (1, 0)
    assert emptied.memory < snapshot.memory / 5


def test_what_was_removed_counts_until_it_is_given_back():
    snapshot = load(loaded(1, commit(*FIRST, add("a"), add("b"), add("c")), commit(remove("a"))))
    assert (snapshot.files.num_files, snapshot.files.dropped) == (2, 1)

    after = advance(snapshot, loaded(2, batch_of([{("d", None): 1, ("e", None): 1}, {("d", None): None}])))

    assert (after.files.num_files, after.files.dropped) == (3, 2)
    assert after.memory > snapshot.memory


def test_many_refreshes_do_not_leave_many_chunks():
    snapshot = load(loaded(0, commit(*FIRST, *(add(f"b{number}") for number in range(1000)))))
    for version in range(1, 200):
        snapshot = advance(snapshot, loaded(version, commit(add(f"f{version}"))))

    assert snapshot.files.num_files == 1199
    assert len(set(snapshot.files.frame.n_chunks("all"))) == 1
    assert snapshot.files.frame.n_chunks() <= 6


def test_a_refresh_copies_nothing_that_was_there():
    snapshot = load(loaded(0, commit(*FIRST, *(add(f"b{number}") for number in range(1000)))))

    after = advance(snapshot, loaded(1, commit(add("c"), remove("b7"))))

    assert after.files.stock is snapshot.files.stock
    assert after.files.frame["path"].chunk_lengths() == [1000, 1]


def test_columns_that_queries_had_made_are_passed_on_until_rows_are_left_behind():
    batch = [f"f{number}" for number in range(1500)]
    snapshot = load(loaded(0, commit(*FIRST, *map(add, batch))))
    made = pl.DataFrame({"low": range(1500)})
    snapshot.files.columns.get(["a"], 1500, lambda keys, offset, length: {"a": made})

    grown = advance(snapshot, loaded(1, commit(add("new"), remove("f0"))))
    compacted = advance(grown, loaded(2, commit(*map(remove, batch[1:]))))

    assert grown.files.columns.has("a", 1500)
    assert not grown.files.columns.has("a", 1501)
    assert grown.files.memory > snapshot.files.memory >= made.estimated_size()
    assert not compacted.files.columns.has("a", 1)
