"""Configurations with tables and storages."""

from __future__ import annotations

from typing import Any

from gateway.config.schema import Config


def config(
    *tables: str | dict[str, Any], storages: list[dict[str, Any]] | None = None, **share: Any
) -> Config:
    """Return a configuration with one share; a table is its location, or its entry but for the name."""
    entries = [
        {"name": f"t{number}", **({"location": table} if isinstance(table, str) else table)}
        for number, table in enumerate(tables)
    ]
    shares = [{"name": "s", "schemas": [{"name": "d", "tables": entries}], **share}]
    return Config.model_validate({"shares": shares, "storages": storages})


def storage(name: str, prefix: str, vendor: str = "fake", **options: Any) -> dict[str, Any]:
    return {"name": name, "prefix": prefix, "vendor": vendor, "options": options}
