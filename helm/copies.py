"""The alerts and dashboards that the chart ships: copies, as a chart may not name files outside of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from helm.values import CHART

_DEPLOY: Final = Path(__file__).parents[1] / "deploy"
_ORIGINS: Final = {
    CHART / "files" / "rules": sorted((_DEPLOY / "prometheus" / "rules").glob("*.yaml")),
    CHART / "files" / "dashboards": sorted((_DEPLOY / "grafana" / "dashboards").glob("*.json")),
}


def copy_all() -> None:
    """Make the chart's folders hold what the project's do, and nothing else."""
    for folder, originals in _ORIGINS.items():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for original in originals:
            (folder / original.name).write_bytes(original.read_bytes())
