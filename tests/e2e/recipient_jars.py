"""The jars that PySpark reads S3 with, fetched once by Maven into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.repository import ROOT

POM = ROOT / "deploy" / "dev" / "spark" / "pom.xml"


def spark_jars() -> Path:
    """Return the directory of the jars that the pom names."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.fail(f"{program} is not there: Java 17 and Maven bring Spark's jars", pytrace=False)
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    jars = _cache() / f"spark-jars-{digest}"
    if not jars.exists():
        _fetch(jars)
    return jars


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sluice" / "components"


def _fetch(jars: Path) -> None:
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as directory:
        fresh = Path(directory) / "jars"
        # The pom is copied, because Maven writes beside it.
        pom = shutil.copy(POM, directory)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        subprocess.run(["mvn", "-q", "-B", "-f", pom, *goal], check=True)
        # Moved as a whole: half a set of jars must never be taken for all of them.
        if not jars.exists():
            fresh.rename(jars)
