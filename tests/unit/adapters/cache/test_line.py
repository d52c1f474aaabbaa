from __future__ import annotations

from gateway.adapters.cache.line import is_short, new_line
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON, credential, scope

LINE = new_line(b"f", scope())
TURN = LINE.rhythm.turn_at(NOON)


def test_a_credential_is_found_in_its_window_only():
    line = new_line(b"f", scope())
    held = credential("c", TURN.start + HOUR)
    line.hold(held, TURN)
    found = line.find(TURN, NOON)
    assert found is not None
    assert found.credential is held
    assert line.find(line.rhythm.turn_at(TURN.end), NOON) is None
    assert line.find(TURN, TURN.end) is None


def test_of_old_credentials_the_one_that_lives_longest_is_found():
    line = new_line(b"f", scope())
    for number, life in enumerate((40, 50, 30)):
        held = credential(str(number), NOON + life * MINUTE)
        line.hold(held, line.rhythm.turn_at(NOON + number * line.rhythm.width))
    assert line.find_stale(NOON) == credential("1", NOON + 50 * MINUTE)
    assert line.find_stale(NOON + 45 * MINUTE) == credential("1", NOON + 50 * MINUTE)
    assert line.find_stale(NOON + 46 * MINUTE) is None


def test_three_windows_are_held_and_no_more():
    line = new_line(b"f", scope())
    turns = [line.rhythm.turn_at(NOON + number * line.rhythm.width) for number in range(5)]
    sizes = []
    for turn in turns:
        line.hold(credential("c", NOON + 9 * HOUR), turn)
        sizes.append(line.size())
    assert [line.find(turn, turn.start) is not None for turn in turns] == [False, False, True, True, True]
    assert sizes[2] == sizes[3] == sizes[4]


def test_it_is_hot_until_the_next_one_should_be_asked_for_and_then_until_the_end():
    line = new_line(b"f", scope())
    line.hold(credential("c", TURN.start + HOUR), TURN)
    held = line.find(TURN, NOON)
    assert held is not None
    line.heat(held, lambda: 0.0)
    assert (line.hot_from, line.hot_until) == (TURN.start, TURN.end - line.rhythm.ahead / 5)
    following = line.rhythm.turn_at(TURN.end)
    line.hold(credential("d", TURN.end + HOUR), following)
    line.heat(held, lambda: 0.0)
    assert line.hot_until == TURN.end


def test_chance_only_ever_brings_the_next_one_forward_and_not_too_far():
    for number in range(11):
        line = new_line(b"f", scope())
        line.hold(credential("c", TURN.start + HOUR), TURN)
        held = line.find(TURN, NOON)
        assert held is not None
        line.heat(held, lambda number=number: number / 10)  # type: ignore[misc]
        assert TURN.end - line.rhythm.ahead <= line.refresh_at < TURN.end


def test_short_is_what_has_less_than_half_of_what_was_asked_for():
    assert is_short(credential("c", NOON + 29 * MINUTE), LINE.rhythm, NOON)
    assert not is_short(credential("c", NOON + 30 * MINUTE), LINE.rhythm, NOON)


def test_keys_and_secrets_do_not_print():
    line = new_line(b"fingerprint", scope(recipient="ann"))
    line.hold(credential("c", NOON), TURN)
    assert "ann" not in repr(line)
    assert "fingerprint" not in repr(line)
    assert credential("c", NOON).id not in repr(line)
