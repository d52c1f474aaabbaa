"""``python -m deploy.grafana.build``: writes the dashboards that lie beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from deploy.grafana.boards import cache, dir_access, overview, pipeline, recipients, url_access
from deploy.grafana.rendering import render

DASHBOARDS = Path(__file__).parent / "dashboards"
BOARDS = (
    overview.BOARD,
    url_access.BOARD,
    dir_access.BOARD,
    cache.BOARD,
    recipients.BOARD,
    pipeline.BOARD,
)


def files() -> Mapping[str, str]:
    """Return what each file of a dashboard should hold."""
    return {
        f"{board.name}.json": json.dumps(render(board), indent=2, ensure_ascii=False) + "\n"
        for board in BOARDS
    }


def main() -> None:
    DASHBOARDS.mkdir(exist_ok=True)
    for name, text in files().items():
        (DASHBOARDS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
