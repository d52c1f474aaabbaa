"""The jars that PySpark reads S3 with, as the pipeline fetches them."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.jars import fetch_jars, user_cache
from tests.installed import require_java


def spark_jars() -> Path:
    """Return the directory of the jars that the pom names."""
    require_java()
    return fetch_jars(user_cache(os.environ))
