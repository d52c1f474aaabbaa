"""What a run needs on this machine, said before anything is begun."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from gateway.config.schema import Config
from gateway.errors import Unavailable


def check_needs(config: Config, env: Mapping[str, str]) -> None:
    """Raise ``Unavailable`` in words that name the next step where jobs cannot run here."""
    remote = config.pipeline.spark.remote
    extra = "connect" if remote else "pipeline"
    if importlib.util.find_spec("pyspark") is None:
        raise Unavailable(
            f"PySpark is not installed, which jobs run on: pip install '.[{extra}]' in a checkout of Sluice"
        )
    if not remote and not _has_java(env):
        raise Unavailable(
            "there is no Java on this machine, which Spark needs: install a Java runtime 17 or later, or set "
            "JAVA_HOME, or name a Spark Connect server in pipeline.spark.remote"
        )


def _has_java(env: Mapping[str, str]) -> bool:
    home = env.get("JAVA_HOME")
    if home and Path(home, "bin", "java").exists():
        return True
    return shutil.which("java", path=env.get("PATH")) is not None
