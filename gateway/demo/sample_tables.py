"""What the sample tables hold: one for each thing that a newcomer may want to try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import polars as pl

from gateway.demo.data_file import to_data_file
from gateway.demo.feature_tables import change_feed, column_mapping, deletion_vectors, v2_checkpoint
from gateway.demo.schema import Field, array_of, map_of, struct_of
from gateway.demo.table_builder import TableBuilder

MANY_FILES: Final = 10_000
_FILES_PER_DAY: Final = 100
_FIRST_DAY: Final = date(2024, 1, 1)
_NOON: Final = datetime(2024, 1, 1, 12, tzinfo=UTC)

ODD_VALUES: Final = (
    "plain",
    "two words",
    "100%",
    "a=b",
    "a/b",
    "a\\b",
    "#1",
    "why?",
    "1+1",
    "a&b",
    "it's",
    'say "hi"',
    "{[^]}",
    "%2F",
    "..",
    "tab\there",
    "line\u2028separator",
    "Grüße",
    "東京",
    "🚰",
    "",
    None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTable:
    """A table of the sample share, and how it is built in a directory."""

    schema: str
    name: str
    comment: str
    build: Callable[[Path], object]
    history_shared: bool = False


def _orders(directory: Path) -> None:
    fields = [
        Field("order_id", "long"),
        Field("customer_id", "long"),
        Field("amount", "decimal(12,2)", "in euros"),
        Field("ordered_at", "timestamp"),
    ]
    rows = [
        {
            "order_id": number,
            "customer_id": number * 7 % 200,
            "amount": Decimal(number * 1337 % 100_000) / 100,
            "ordered_at": _NOON + timedelta(minutes=number),
        }
        for number in range(1, 1001)
    ]
    TableBuilder(directory, fields).append(rows[:600], files=3).append(rows[600:], files=2)


def _customers(directory: Path) -> None:
    fields = [Field("customer_id", "long"), Field("name", "string"), Field("since", "date")]
    rows = [
        {
            "customer_id": number,
            "name": f"Customer {number:03d}",
            "since": _FIRST_DAY - timedelta(days=number),
        }
        for number in range(200)
    ]
    TableBuilder(directory, fields).append(rows)


def _daily_revenue(directory: Path) -> None:
    fields = [
        Field("shop", "integer"),
        Field("revenue", "double"),
        Field("day", "date"),
        Field("region", "string"),
    ]
    rows = [
        {
            "shop": shop,
            "revenue": float(shop * 100 + day),
            "day": _FIRST_DAY + timedelta(days=day),
            "region": region,
        }
        for day in range(30)
        for region in ("north", "south", "west")
        for shop in range(4)
    ]
    TableBuilder(directory, fields, partition_by=["day", "region"]).append(rows)


def _inventory(directory: Path) -> None:
    fields = [Field("item", "string"), Field("stock", "integer")]
    items = pl.DataFrame({"item": [f"item {number}" for number in range(10)], "stock": range(10)})
    table = TableBuilder(directory, fields).append(items[:6], files=2).append(items[6:])
    table.delete(pl.col("item").is_in(["item 0", "item 1"])).checkpoint()
    table.append([{"item": "item 10", "stock": 5}])
    table.overwrite(items.with_columns(pl.col("stock") + 100))


def _cities(directory: Path) -> None:
    fields = [Field("city", "string"), Field("population", "long"), Field("country", "string")]
    rows = [
        ("Wien", 2_006_000, "Österreich"),
        ("Graz", 303_000, "Österreich"),
        ("東京", 14_190_000, "日本"),
        ("大阪", 2_770_000, "日本"),
        ("Yamoussoukro", 422_000, "Côte d'Ivoire"),
        ("New York", 8_258_000, "United States"),
        ("Αθήνα", 643_000, "Ελλάδα"),
    ]
    frame = pl.DataFrame(rows, schema=["city", "population", "country"], orient="row")
    TableBuilder(directory, fields, partition_by=["country"]).append(frame)


def _stations(directory: Path) -> None:
    position = struct_of(Field("latitude", "double"), Field("longitude", "double"))
    fields = [
        Field("station", "integer"),
        Field("position", position),
        Field("sensors", array_of("string")),
        Field("labels", map_of("string", "string")),
    ]
    rows = [
        {
            "station": number,
            "position": {"latitude": 40 + number / 10, "longitude": 10 - number / 10},
            "sensors": ["temperature", "wind"][: number % 3],
            "labels": {"operator": f"operator {number % 2}"},
        }
        for number in range(20)
    ]
    TableBuilder(directory, fields).append(rows)


def _types(directory: Path) -> None:
    columns: Sequence[tuple[Field, Any]] = (
        (Field("a_byte", "byte"), -128),
        (Field("a_short", "short"), 32767),
        (Field("an_integer", "integer"), -2147483648),
        (Field("a_long", "long"), 9223372036854775807),
        (Field("a_float", "float"), 1.5),
        (Field("a_double", "double"), -2.25),
        (Field("a_boolean", "boolean"), True),
        (Field("a_string", "string"), 'quotes ", backslash \\, separator \u2028, 東京'),
        (Field("a_binary", "binary"), b"\x00\xff"),
        (Field("a_date", "date"), date(1969, 7, 20)),
        (Field("a_timestamp", "timestamp"), datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)),
        (Field("a_decimal", "decimal(10,2)"), Decimal("-12345678.90")),
        (Field("a_long_decimal", "decimal(38,18)"), Decimal("12345678901234567890.123456789012345678")),
        (Field("an_array", array_of("long")), [1, None, 3]),
        (Field("a_map", map_of("string", "integer")), {"one": 1, "none": None}),
        (
            Field("a_struct", struct_of(Field("name", "string"), Field("tags", array_of("string")))),
            {"name": "x", "tags": ["y"]},
        ),
    )
    full = {field.name: value for field, value in columns}
    empty = dict.fromkeys(full)
    TableBuilder(directory, [field for field, _ in columns]).append([full, empty])


def _partition_values(directory: Path) -> None:
    fields = [Field("number", "long"), Field("value", "string")]
    rows = [{"number": number, "value": value} for number, value in enumerate(ODD_VALUES)]
    TableBuilder(directory, fields, partition_by=["value"]).append(rows)


def _partition_types(directory: Path) -> None:
    partitions = [
        (Field("a_date", "date"), date(2024, 2, 29)),
        (Field("a_timestamp", "timestamp"), _NOON),
        (Field("a_boolean", "boolean"), True),
        (Field("an_integer", "integer"), 7),
        (Field("a_decimal", "decimal(10,2)"), Decimal("1.50")),
        (Field("a_double", "double"), 0.5),
    ]
    full = {field.name: value for field, value in partitions}
    fields = [Field("number", "long"), *(field for field, _ in partitions)]
    TableBuilder(directory, fields, partition_by=list(full)).append(
        [{"number": 1, **full}, {"number": 2, **dict.fromkeys(full)}]
    )


def _empty(directory: Path) -> None:
    TableBuilder(directory, [Field("number", "long"), Field("text", "string")]).create()


def _without_stats(directory: Path) -> None:
    table = TableBuilder(directory, [Field("number", "long")])
    table.append([{"number": number} for number in range(10)], stats=False, files=2)


def _cleaned_up(directory: Path) -> None:
    table = TableBuilder(directory, [Field("number", "long")])
    for number in range(6):
        table.append([{"number": number}])
    table.checkpoint(parts=3).clean_up(before=5).append([{"number": 6}])


def _ten_thousand_files(directory: Path) -> None:
    fields = [
        Field("station", "integer"),
        Field("hour", "integer"),
        Field("celsius", "double"),
        Field("day", "date"),
    ]
    # A hundred contents, each placed in a hundred days: what counts here is the number of files.
    files = [
        to_data_file(
            pl.DataFrame(
                {
                    "station": pl.Series([station] * 2, dtype=pl.Int32),
                    "hour": pl.Series([0, 12], dtype=pl.Int32),
                    "celsius": [station / 10, station / 10 + 8],
                }
            )
        )
        for station in range(_FILES_PER_DAY)
    ]
    table = TableBuilder(directory, fields, partition_by=["day"])
    days = [_FIRST_DAY + timedelta(days=day) for day in range(MANY_FILES // _FILES_PER_DAY)]
    table.commit(*(table.place(file, {"day": day.isoformat()}) for day in days for file in files))
    table.checkpoint()


SAMPLE_TABLES: Final = (
    SampleTable(schema="sales", name="orders", comment="plain", build=_orders),
    SampleTable(schema="sales", name="customers", comment="plain, one file", build=_customers),
    SampleTable(
        schema="sales", name="daily_revenue", comment="partitioned by day and region", build=_daily_revenue
    ),
    SampleTable(
        schema="sales",
        name="inventory",
        comment="with history: versions 0 to 4, by way of a delete and an overwrite",
        build=_inventory,
        history_shared=True,
    ),
    SampleTable(schema="geo", name="cities", comment="partitioned by names in many scripts", build=_cities),
    SampleTable(schema="geo", name="stations", comment="structs, arrays and maps", build=_stations),
    SampleTable(schema="edge_cases", name="types", comment="every type, and nulls", build=_types),
    SampleTable(
        schema="edge_cases",
        name="partition_values",
        comment="partition values that paths and URLs find hard",
        build=_partition_values,
    ),
    SampleTable(
        schema="edge_cases",
        name="partition_types",
        comment="partitioned by columns that are not text",
        build=_partition_types,
    ),
    SampleTable(schema="edge_cases", name="empty", comment="no files at all", build=_empty),
    SampleTable(
        schema="edge_cases", name="without_stats", comment="files without statistics", build=_without_stats
    ),
    SampleTable(
        schema="edge_cases",
        name="cleaned_up",
        comment="a checkpoint in parts, and no commits before it",
        build=_cleaned_up,
        history_shared=True,
    ),
    SampleTable(
        schema="features",
        name="deletion_vectors",
        comment="rows deleted by deletion vectors, inline and in files",
        build=deletion_vectors,
        history_shared=True,
    ),
    SampleTable(
        schema="features",
        name="column_mapping",
        comment="columns renamed, dropped and added",
        build=column_mapping,
        history_shared=True,
    ),
    SampleTable(
        schema="features",
        name="change_feed",
        comment="an insert, an update and a delete, with their changes",
        build=change_feed,
        history_shared=True,
    ),
    SampleTable(
        schema="features",
        name="v2_checkpoint",
        comment="a checkpoint with sidecars, and times in the commits",
        build=v2_checkpoint,
        history_shared=True,
    ),
    SampleTable(
        schema="big", name="ten_thousand_files", comment="10,000 small files", build=_ten_thousand_files
    ),
)
