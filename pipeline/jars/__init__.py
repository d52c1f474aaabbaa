"""The jars with which Spark reads Delta tables and S3: fetched once by Maven into the user's cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from gateway.errors import Unavailable

POM: Final = Path(__file__).with_name("pom.xml")
# Without a version, Maven runs whichever plugin is the newest.
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


def user_cache(environment: Mapping[str, str]) -> Path:
    """Return where programs and jars are kept that are fetched once."""
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sluice" / "components"


def jars_directory(cache: Path) -> Path:
    """Return the directory of the jars that the pom names, there or not: another pom, another directory."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    return cache / f"spark-jars-{digest}"


def fetch_jars(cache: Path) -> Path:
    """Return the directory of the jars that the pom names, with the jars in it."""
    jars = jars_directory(cache)
    if not jars.exists():
        _fetch(jars)
    return jars


def packages() -> str:
    """Return the pom's dependencies as ``spark.jars.packages`` names them, for where Maven is missing."""
    pom = ET.parse(POM).getroot()  # noqa: S314 -- a file of our own
    properties = {f"${{{entry.tag}}}": entry.text or "" for entry in pom.iterfind("properties/*")}
    return ",".join(
        ":".join(_resolved(entry, part, properties) for part in ("groupId", "artifactId", "version"))
        for entry in pom.iterfind("dependencies/dependency")
    )


def has_maven() -> bool:
    return shutil.which("mvn") is not None


def _fetch(jars: Path) -> None:
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as directory:
        fresh = Path(directory) / "jars"
        # The pom is copied, because Maven writes beside it.
        pom = shutil.copy(POM, directory)
        goal = [f"{_PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        command = ["mvn", "-q", "-B", "--strict-checksums", "-f", str(pom), *goal]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603
        if done.returncode:
            raise Unavailable(f"Maven cannot fetch Spark's jars:\n{_end_of(done.stdout)}")
        # Moved as a whole: half a set of jars must never be taken for all of them.
        if not jars.exists():
            fresh.rename(jars)


def _end_of(output: bytes) -> str:
    return output.decode(errors="replace")[-2000:].strip()


def _resolved(entry: ET.Element, part: str, properties: Mapping[str, str]) -> str:
    text = entry.findtext(part) or ""
    return properties.get(text, text)
