"""Which grant opened which location for whom, from when to when."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pipeline.usage.address import place_of
from pipeline.usage.modes import URL
from pipeline.usage.schema import columns_of


def credential_ledger(paired: DataFrame) -> DataFrame:
    """Return a row for each location of each grant that opened something.

    URLs are signed as an answer goes on: those of its last page end later than those of its first.
    """
    grants = paired.where((sf.col("kind") == "grant") & sf.col("expires_at").isNotNull())
    return grants.select(
        "day",
        sf.col("at").alias("valid_from"),
        sf.greatest("expires_at", "closing_expires_at").alias("valid_until"),
        sf.col("principal").alias("recipient"),
        "actor",
        "mode",
        sf.when(sf.col("mode") == URL, "files").otherwise("directory").alias("opens"),
        sf.explode("locations").alias("location"),
        *("share", "schema", "table", "table_id", "version", "files", "credential_id", "remote"),
        *("user_agent", "request_id"),
        sf.col("id").alias("event_id"),
    ).select(
        *(
            name if name != "place" else place_of(sf.col("location")).alias("place")
            for name in columns_of("credential_ledger")
        )
    )
