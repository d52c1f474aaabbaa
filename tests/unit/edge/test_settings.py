from __future__ import annotations

from gateway.domain.rate import Rate
from gateway.edge.settings import EdgeSettings
from tests.cases import each_case


@each_case(
    ("prefix", "path"),
    [
        ("/delta-sharing", "/delta-sharing"),
        ("delta-sharing/", "/delta-sharing"),
        ("/a/b/", "/a/b"),
        ("/", ""),
        ("", ""),
    ],
)
def test_the_base_path_begins_with_a_slash_and_does_not_end_with_one(prefix: str, path: str) -> None:
    settings = EdgeSettings(prefix=prefix, rate_of=lambda _: Rate(requests_per_second=1, burst=1))
    assert settings.base_path == path
