from __future__ import annotations

from gateway.services.snapshot.state.segments import SEGMENT_ROWS, Segments


def identities(segments: Segments, count: int) -> list[int]:
    return [segments.identity(number) for number in range(count)]


def test_a_segment_keeps_its_identity_and_shares_it_with_no_other():
    first, second = Segments(), Segments()

    assert identities(first, 3) == identities(first, 3)
    assert len({*identities(first, 3), *identities(second, 3)}) == 6


def test_a_commit_changes_the_segments_that_it_touches_and_no_others():
    before = Segments()
    known = identities(before, 3)

    after = before.grown(3 * SEGMENT_ROWS, touched=[1])

    assert [new == old for new, old in zip(identities(after, 3), known, strict=True)] == [True, False, True]
    assert identities(before, 3) == known


def test_the_last_segment_changes_when_rows_are_appended_to_it():
    before = Segments()
    known = identities(before, 2)

    after = before.grown(2 * SEGMENT_ROWS - 1, touched=[])

    assert [new == old for new, old in zip(identities(after, 2), known, strict=True)] == [True, False]


def test_versions_that_grew_apart_share_no_new_segment():
    before = Segments()

    assert before.grown(0, touched=[]).identity(0) != before.grown(0, touched=[]).identity(0)
