from __future__ import annotations

from vendors.gcp.unfinished import Unfinished


def test_what_was_kept_is_given_to_one_who_asks_for_it():
    unfinished = Unfinished()
    unfinished.keep({b"a": b"1", b"b": b"2", b"c": b"3"})

    assert unfinished.take([b"c", b"a", b"d"]) == {b"c": b"3", b"a": b"1"}
    assert unfinished.take([b"a", b"b"]) == {b"b": b"2"}
    assert len(unfinished) == 0


def test_no_more_is_kept_than_so_many_and_the_oldest_go_first():
    unfinished = Unfinished(most=3)
    for number in range(100):
        unfinished.keep({b"%d" % number: b"signature"})
        assert len(unfinished) <= 3

    unfinished.keep({b"100": b"signature", b"101": b"signature"})
    assert list(unfinished.take(b"%d" % number for number in range(102))) == [b"99", b"100", b"101"]


def test_nothing_of_it_prints():
    unfinished = Unfinished()
    unfinished.keep({b"the-message": b"the-signature"})

    assert "the-" not in repr(unfinished)
