from __future__ import annotations

from pipeline.view.source import Changes
from tests.cases import each_case


@each_case(
    ("changes", "is_append"),
    [
        (Changes(), True),
        (Changes(added=3), True),
        (Changes(added=3, removed=1), False),
        (Changes(added=3, added_in_part=1), False),
        (Changes(redefined=1), False),
        (Changes(added=3, odd=1), False),
    ],
)
def test_only_whole_files_that_came_are_an_append(changes, is_append):
    assert changes.is_append is is_append
