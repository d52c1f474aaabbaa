"""``python -m helm``: write anew what of the chart is made from something else."""

from __future__ import annotations

from helm.copies import copy_all
from helm.schema import SCHEMA, schema
from helm.table import README, readme

README.write_text(readme(), "utf-8")
SCHEMA.write_text(schema(), "utf-8")
copy_all()
