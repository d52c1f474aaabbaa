from __future__ import annotations

from gateway.config.faults import ConfigError, Fault


def test_a_fault_says_where_what_and_what_was_meant():
    fault = Fault(path="shares[0].nam", message="is not a known key", line=3, found="'x'", suggestion="name")
    assert str(fault) == "line 3: shares[0].nam: is not a known key (found 'x'); did you mean name?"


def test_a_fault_without_a_place_is_its_message():
    assert str(Fault(path="", message="not valid YAML")) == "not valid YAML"


def test_an_error_lists_its_faults():
    error = ConfigError([Fault(path="a", message="x"), Fault(path="b", message="y")])
    assert str(error) == "a: x\nb: y"


def test_an_error_cuts_a_long_list():
    error = ConfigError([Fault(path=f"a{number}", message="x") for number in range(1100)])
    lines = str(error).splitlines()
    assert len(lines) == 101
    assert lines[-1] == "… and 1,000 more"
    assert len(error.faults) == 1100
