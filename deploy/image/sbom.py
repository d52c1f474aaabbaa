"""Writes the image's bill of materials: what is installed, with licences and hashes, and the base it lies on.

Runs in an environment of its own with cyclonedx-bom, which reads packages' metadata and brings the schema.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

VERSION = SchemaVersion.V1_6
NAME = "sbom.cdx.json"

Document = dict[str, Any]


def main() -> int:
    arguments = _parse_arguments()
    bom = _environment(arguments.prefix / "bin" / "python", arguments.pyproject)
    _add_hashes(bom["components"], _hashes(arguments.reports.glob("*.json")))
    _add_licences(bom["components"], arguments.prefix)
    bom["components"].append(_base(arguments.base))
    text = json.dumps(bom, indent=1, sort_keys=True)
    if fault := JsonStrictValidator(VERSION).validate_str(text):
        sys.stderr.write(f"sbom: it does not follow the schema of CycloneDX: {fault}\n")
        return 1
    (arguments.prefix / NAME).write_text(text + "\n")
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write a CycloneDX bill of materials for an environment.")
    parser.add_argument("prefix", type=Path, help="the environment; the file is written into it")
    parser.add_argument("--reports", type=Path, required=True, help="a folder of what pip reported")
    parser.add_argument("--base", required=True, metavar="IMAGE", help="what the image is built on")
    parser.add_argument("--pyproject", type=Path, default=Path("pyproject.toml"), help="of what it is for")
    return parser.parse_args()


def _environment(python: Path, pyproject: Path) -> Document:
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--no-validate"]
    options = ["--sv", VERSION.to_version(), "--pyproject", str(pyproject), str(python)]
    done = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE)  # noqa: S603
    bom: Document = json.loads(done.stdout)
    return bom


def _hashes(reports: Iterable[Path]) -> dict[str, str]:
    """Return the hash of the archive that each package came from, by its name and version."""
    found = {}
    for report in reports:
        for entry in json.loads(report.read_text())["install"]:
            metadata = entry["metadata"]
            digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
            found[f"{_canonical(metadata['name'])} {metadata['version']}"] = digest
    return found


def _add_hashes(components: list[Document], hashes: dict[str, str]) -> None:
    for component in components:
        key = f"{_canonical(component['name'])} {component.get('version')}"
        if key in hashes:
            component["hashes"] = [{"alg": "SHA-256", "content": hashes[key]}]


def _add_licences(components: list[Document], prefix: Path) -> None:
    """Name the licences that packages give in words of their own, which the tool leaves out."""
    places = [str(place) for place in prefix.glob("lib/python3*/site-packages")]
    said = {_canonical(one.name): one.metadata["License"] for one in distributions(path=places)}
    for component in components:
        words = said.get(_canonical(component["name"]))
        if words and not component.get("licenses"):
            component["licenses"] = [{"license": {"name": words, "acknowledgement": "declared"}}]


def _base(image: str) -> Document:
    name, _, digest = image.partition("@sha256:")
    repository, _, tag = name.rpartition(":")
    component = {
        "bom-ref": "base",
        "type": "container",
        "name": repository,
        "version": tag,
        "description": "the base image; its own packages are not listed here",
        "purl": f"pkg:docker/{repository}@{tag}",
    }
    return component | ({"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {})


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    sys.exit(main())
