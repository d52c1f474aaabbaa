from __future__ import annotations

import sys

from gateway.edge.routes import ROUTES
from pipeline.usage.modes import DIR, MODES, URL

# What a handler asks the catalog for, without which there is nothing that it could hand out.
ASKED_FOR = {"ask_for_files": URL, "AUDIENCE_VENDING": DIR}


def test_every_route_that_can_hand_out_access_has_its_mode():
    expected = {
        route.operation: mode
        for route in ROUTES
        for name, mode in ASKED_FOR.items()
        if hasattr(sys.modules[route.handler.__module__], name)
    }
    assert expected == MODES
