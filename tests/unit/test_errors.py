from __future__ import annotations

from gateway import errors
from tests.cases import each_case


def test_the_tree_is_flat():
    for error in errors.GatewayError.__subclasses__():
        assert not error.__subclasses__()


@each_case("error", errors.GatewayError.__subclasses__())
def test_an_error_is_its_message_with_a_code(error):
    raised = error("the thing is wrong")

    assert str(raised) == raised.message == "the thing is wrong"
    assert raised.error_code == error.default_code
