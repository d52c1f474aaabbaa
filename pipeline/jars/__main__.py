"""Prints the jars, fetched where they are missing: ``spark-submit --jars "$(python -m pipeline.jars)" …``."""

from __future__ import annotations

import os
import sys

from pipeline.jars import fetch_jars, user_cache

if __name__ == "__main__":
    jars = fetch_jars(user_cache(os.environ))
    sys.stdout.write(",".join(map(str, sorted(jars.glob("*.jar")))) + "\n")
