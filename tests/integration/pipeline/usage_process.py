"""Runs the usage job in a process of its own, to be killed: ``python -m … DIRECTORY``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from pipeline.session import open_session
from tests.integration.pipeline.usage_lake import Lake
from tests.spark import SETTINGS


def main(directory: Path) -> None:
    spark = open_session(SETTINGS)
    Lake(directory).run(spark)
    # The test may stop the job late: there is something to stop then, too.
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
