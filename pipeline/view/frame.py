"""A view's rows as a frame that can be written anywhere: plain names, plain types, nothing of its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gateway.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# What Parquet and Delta keep for themselves.
_NOT_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")
# How a query is read, whatever else a cluster is set to: these are what it was checked by.
_READING: Final = {
    "spark.sql.caseSensitive": "false",
    # A text may say ${env:…}, and mean it.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}


def view_frame(
    spark: SparkSession, query: str, sources: Sequence[DataFrame], parameters: Mapping[str, str | None]
) -> DataFrame:
    """Run the query over the sources, and return what it shows as a plain frame."""
    for name, value in _READING.items():
        spark.conf.set(name, value)
    for number, source in enumerate(sources):
        source.createOrReplaceTempView(f"source_{number}")
    return plain(_query(spark, query, parameters))


def plain(frame: DataFrame) -> DataFrame:
    """Return a frame without the properties of columns that came along from tables.

    Those tell of columns that are not shown, in expressions and comments, and make demands on the writer.
    """
    from pyspark.sql.functions import col  # noqa: PLC0415 -- half a second, and not everywhere

    _check_names(frame.schema, "")
    return frame.select(
        *(
            col(_quoted(field.name))
            .cast(_plain_type(field.dataType, field.name))
            .alias(field.name, metadata={})
            for field in frame.schema.fields
        )
    )


def _query(spark: SparkSession, query: str, parameters: Mapping[str, str | None]) -> DataFrame:
    """Run a query with parameters that are strings even where they are NULL.

    Given to ``sql`` itself a NULL would have no type, which not every function takes.
    """
    if not parameters:
        return spark.sql(query)
    for name, value in {"query": query, **parameters}.items():
        spark.sql(f"DECLARE OR REPLACE VARIABLE {_variable(name)} STRING")
        spark.sql(f"SET VARIABLE {_variable(name)} = :value", args={"value": value})
    using = ", ".join(f"{_variable(name)} AS {name}" for name in parameters)
    return spark.sql(f"EXECUTE IMMEDIATE {_variable('query')} USING {using}")


def _variable(name: str) -> str:
    return f"sluice_{name}"


def _check_names(schema: StructType, above: str) -> None:
    seen: set[str] = set()
    for field in schema.fields:
        name = f"{above}{field.name}"
        if not field.name or _NOT_IN_NAMES.intersection(field.name):
            raise InvalidArgument(f"column {name!r} of the view needs another name, by AS")
        # Engines that read it may not tell upper from lower case.
        if field.name.casefold() in seen:
            raise InvalidArgument(f"the view has two columns of the name {name!r}; rename one by AS")
        seen.add(field.name.casefold())
        for struct in _structs(field.dataType):
            _check_names(struct, f"{name}.")


def _structs(kind: DataType) -> Iterator[StructType]:
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415

    if isinstance(kind, StructType):
        yield kind
    elif isinstance(kind, ArrayType):
        yield from _structs(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _structs(kind.keyType)
        yield from _structs(kind.valueType)


def _plain_type(kind: DataType, column: str) -> DataType:
    """Return the type with nothing but its shape, or refuse one that a table cannot have."""
    from pyspark.sql import types  # noqa: PLC0415

    if isinstance(kind, types.StructType):
        inner = (types.StructField(each.name, _plain_type(each.dataType, column)) for each in kind.fields)
        return types.StructType(list(inner))
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_plain_type(kind.elementType, column))
    if isinstance(kind, types.MapType):
        return types.MapType(_plain_type(kind.keyType, column), _plain_type(kind.valueType, column))
    if isinstance(kind, types.StringType | types.CharType | types.VarcharType):
        return types.StringType()
    if type(kind) not in _storable():
        raise Unsupported(f"column {column!r} of the view cannot be kept as {kind.simpleString()}; cast it")
    return kind


def _storable() -> tuple[type[DataType], ...]:
    from pyspark.sql import types  # noqa: PLC0415

    return (
        *(types.BooleanType, types.ByteType, types.ShortType, types.IntegerType, types.LongType),
        *(types.FloatType, types.DoubleType, types.DecimalType, types.BinaryType),
        *(types.DateType, types.TimestampType, types.TimestampNTZType, types.VariantType),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
