from __future__ import annotations

from gateway.edge.documentation import load_document
from gateway.edge.routes import ROUTES


def test_every_route_is_documented_with_its_method() -> None:
    documented = load_document()["paths"]
    for route in ROUTES:
        assert route.method.lower() in documented[route.path], route.path


def test_no_route_stands_twice() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_a_pattern_takes_any_name_but_none_with_a_slash() -> None:
    (route,) = [route for route in ROUTES if route.path == "/shares/{share}"]
    assert route.pattern == "/shares/{share:[^/]+}"
