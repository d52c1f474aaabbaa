"""The sample tables on the embedded S3: what is uploaded, and what a configuration says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.demo.s3_access import BUCKET, ROLE_ARN, Keys
from gateway.demo.sample_tables import SAMPLE_TABLES, SampleTable

SCHEMA: Final = "lake"
STORAGE: Final = "lake"


@dataclass(frozen=True, slots=True)
class S3Table:
    """A table in the bucket, and the sample table whose files it has."""

    name: str
    source: SampleTable

    @property
    def key(self) -> str:
        """Return what its objects' keys begin with."""
        return f"{self.source.schema}/{self.name}"


def _sample_table(name: str) -> SampleTable:
    return next(table for table in SAMPLE_TABLES if table.name == name)


# The second begins with the name of the first, which a careless scope would take for it.
S3_TABLES: Final = (
    S3Table("orders", _sample_table("orders")),
    S3Table("orders_archive", _sample_table("orders")),
    S3Table("customers", _sample_table("customers")),
)


def to_schema() -> dict[str, Any]:
    """Return the schema of a share with the tables on S3, which are shared in both ways."""
    tables = [
        {
            "name": table.name,
            "location": f"s3://{BUCKET}/{table.key}",
            # A credential for the directory opens all of its history.
            "historyShared": True,
            "accessModes": ["url", "dir"],
        }
        for table in S3_TABLES
    ]
    return {"name": SCHEMA, "tables": tables}


def to_storage(endpoint: str, region: str, gateway: Keys) -> dict[str, Any]:
    """Return the entry of a configuration's ``storages``."""
    return {
        "name": STORAGE,
        "prefix": f"s3://{BUCKET}",
        "vendor": "s3",
        "options": {
            "profile": "seaweedfs",
            "endpoint": endpoint,
            "region": region,
            "identity": {
                "kind": "keys",
                "accessKeyId": gateway.access_key_id,
                "secretAccessKey": {"value": gateway.secret_access_key},
            },
            "role": {"arn": ROLE_ARN},
            # No two of the sample's directories differ by case only.
            "acceptCaseVariants": True,
        },
    }
