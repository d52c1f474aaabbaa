from __future__ import annotations

import pytest

from gateway import errors


def test_the_tree_is_flat():
    for error in errors.GatewayError.__subclasses__():
        assert not error.__subclasses__()


@pytest.mark.parametrize("error", errors.GatewayError.__subclasses__())
def test_an_error_is_its_message_with_a_code(error):
    raised = error("the thing is wrong")

    assert str(raised) == raised.message == "the thing is wrong"
    assert raised.error_code == error.default_code
