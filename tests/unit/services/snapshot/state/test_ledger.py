from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.state.files import Stock
from gateway.services.snapshot.state.ledger import Ledger
from gateway.services.snapshot.state.snapshot import Snapshot
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.state.snapshots import files_of, snapshot_of

ALONE = snapshot_of(10)
BASE = files_of(1000, stock=True)


def test_a_snapshot_is_charged_with_what_it_takes():
    ledger = Ledger()
    ledger.add("a", ALONE)
    ledger.add("b", ALONE)
    assert ledger.size == 2 * ALONE.memory

    ledger.remove("a", ALONE)
    assert ledger.size == ALONE.memory


def test_rows_in_common_are_charged_once_until_the_last_is_gone():
    older, newer = snapshot_of(BASE, 1), snapshot_of(replace(BASE, grown=500), 2)
    ledger = Ledger()
    ledger.add(1, older)
    ledger.add(2, newer)
    assert ledger.size == newer.memory + older.bare_memory

    ledger.remove(2, newer)
    assert ledger.size == older.memory
    ledger.remove(1, older)
    assert ledger.size == 0


@settings(max_examples=examples(0.5))
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 900)), max_size=20))
def test_nothing_is_left_when_all_is_gone(steps):
    stocks = [Stock(1000), Stock(2000), None]
    ledger = Ledger()
    kept: dict[int, Snapshot] = {}
    for key, stock, grown in steps:
        if key in kept:
            ledger.remove(key, kept.pop(key))
        else:
            kept[key] = snapshot_of(replace(BASE, stock=stocks[stock], grown=grown))
            ledger.add(key, kept[key])
        assert ledger.size <= sum(snapshot.memory for snapshot in kept.values())
    for key, snapshot in kept.items():
        ledger.remove(key, snapshot)

    assert ledger.size == 0
