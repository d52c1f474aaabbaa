"""The jars that PySpark reads S3 with, as the pipeline fetches them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pipeline.jars import fetch_jars, user_cache


def spark_jars() -> Path:
    """Return the directory of the jars that the pom names."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.fail(f"{program} is not there: Java 17 and Maven bring Spark's jars", pytrace=False)
    return fetch_jars(user_cache(os.environ))
