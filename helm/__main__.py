"""``python -m helm``: write the chart's README and schema anew from its values."""

from __future__ import annotations

from helm.schema import SCHEMA, schema
from helm.table import README, readme

README.write_text(readme(), "utf-8")
SCHEMA.write_text(schema(), "utf-8")
