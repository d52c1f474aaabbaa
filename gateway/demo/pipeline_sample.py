"""What the demo's configuration says when a worker is to try the pipeline on it: usage, and a view."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from gateway.demo.sample import SHARE

SCHEMA: Final = "views"
VIEW: Final = "my_revenue"
# What the demo's recipient is shown of the view: the rows of its own region.
PROPERTIES: Final = {"region": "north"}

# Whoever tries it does not want to wait for a usual segment to be full or old.
_SEGMENT_AGE: Final = "10s"
_EVERY: Final = "30s"


def add_pipeline(settings: dict[str, Any], state: Path) -> None:
    """Have usage counted, and a view shown, below the demo's directory."""
    usage, views = state / "usage", state / "views"
    settings["audit"] = {"segmentAge": _SEGMENT_AGE}
    settings["usage"] = {
        "landing": str(usage / "landing"),
        "location": str(usage / "tables"),
        "every": _EVERY,
    }
    settings["storages"].append({"name": "views", "prefix": str(views), "vendor": "local"})
    settings["shares"][0]["schemas"].append({"name": SCHEMA, "views": [_view(views)]})
    settings["recipients"][0]["properties"] = dict(PROPERTIES)


def _view(root: Path) -> dict[str, Any]:
    return {
        "name": VIEW,
        "from": f"{SHARE}.sales.daily_revenue",
        "columns": ["shop", "day", "revenue"],
        "filter": "region = current_recipient('region')",
        "location": str(root / VIEW),
        "maxStaleness": "1h",
    }
