from __future__ import annotations

import pytest

from gateway.demo.table_state import TableState
from tests.builders import add, inline_vector, remove

VECTOR = inline_vector([1])


@pytest.mark.parametrize("reverse", [False, True])
def test_a_file_that_gets_a_vector_is_another_file(reverse):
    state = TableState()
    state.apply([add("a")])
    actions = [remove("a"), add("a", deletionVector=VECTOR)]
    state.apply(reversed(actions) if reverse else actions)

    assert state.live == {"a": {**add("a")["add"], "deletionVector": VECTOR}}
    assert [action for action in state.to_file_actions() if "remove" in action] == [remove("a")]


def test_a_file_that_comes_back_is_not_removed():
    state = TableState()
    for actions in ([add("a")], [remove("a")], [add("a", size=2)]):
        state.apply(actions)

    assert state.to_file_actions() == [add("a", size=2)]


def test_what_is_about_the_table_is_the_latest_of_its_kind():
    state = TableState()
    state.apply([{"protocol": {"minReaderVersion": 1}}, {"metaData": {"id": "1"}}])
    state.apply([{"txn": {"appId": "x", "version": 1}}, {"domainMetadata": {"domain": "d", "n": 1}}])
    state.apply([{"txn": {"appId": "x", "version": 2}}, {"metaData": {"id": "2"}}, {"commitInfo": {}}])

    assert state.to_table_actions() == [
        {"protocol": {"minReaderVersion": 1}},
        {"metaData": {"id": "2"}},
        {"txn": {"appId": "x", "version": 2}},
        {"domainMetadata": {"domain": "d", "n": 1}},
    ]


def test_what_was_never_said_is_left_out():
    state = TableState()
    state.apply([add("a"), remove("b")])

    assert state.to_actions() == [add("a"), remove("b")]
