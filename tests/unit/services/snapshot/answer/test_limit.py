from __future__ import annotations

import json

from gateway.services.snapshot.answer.batch import MAX_FILES
from gateway.services.snapshot.answer.page import render_files
from tests.cases import each_case
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import DELTA, PARQUET, files_of, many, no_lines


def count_of(files, limit, line=PARQUET, **options) -> int:
    return sum(
        page.files for page in render_files(files, line, GRANT, limit=limit, rendered=no_lines(), **options)
    )


def counted(*records):
    return files_of(
        *(
            {"path": str(number), "stats": None if count is None else json.dumps({"numRecords": count})}
            for number, count in enumerate(records)
        )
    )


@each_case(
    ("records", "limit", "expected"),
    [
        ([10, 10, 10], None, 3),
        ([10, 10, 10], 0, 0),
        ([10, 10, 10], 1, 1),
        ([10, 10, 10], 10, 1),
        ([10, 10, 10], 11, 2),
        ([10, 10, 10], 31, 3),
        ([10, None, 10], 11, 3),
        ([None, None], 1, 2),
        ([0, 0, 5], 5, 3),
        ([-7, 5, 5], 5, 2),
        ([2**63 - 1, 2**63 - 1, 1], 2**63 - 1, 1),
    ],
)
def test_a_limit_takes_the_fewest_files_from_the_front(records, limit, expected):
    assert count_of(counted(*records), limit) == expected


def test_deleted_rows_do_not_count():
    vectors = [
        {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": count}
        for count in (4, 20)
    ]
    files = files_of(
        {"path": "a", "stats": '{"numRecords":10}', "deletionVector": vectors[0]},
        # More than there are, by statistics that are wrong: nothing, and not less than that.
        {"path": "b", "stats": '{"numRecords":10}', "deletionVector": vectors[1]},
        {"path": "c", "stats": '{"numRecords":10}'},
    )

    assert [count_of(files, limit, DELTA) for limit in (6, 7, 16, 17)] == [1, 3, 3, 3]


def test_a_limit_counts_only_what_the_predicates_keep():
    files = counted(10, 10, 10, 10)

    assert count_of(files, 11, kept=files.frame["path"].is_in(["1", "3"])) == 2
    assert count_of(files, 10, kept=files.frame["path"].is_in(["1", "3"])) == 1


def test_a_limit_reaches_over_pages():
    files = many(12 * MAX_FILES, stats='{"numRecords":2}')

    pages = list(render_files(files, PARQUET, GRANT, limit=2 * 10 * MAX_FILES + 1, rendered=no_lines()))

    assert [page.files for page in pages] == [*[MAX_FILES] * 10, 1]


@each_case("stats", ["", "not json", "[1]", '{"numRecords":"x"}', '{"numRecords":1.5}', "null"])
def test_statistics_that_do_not_count_count_for_nothing(stats):
    assert count_of(many(3, stats=stats), 1) == 3
