from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.errors import Unavailable
from pipeline.jars import POM, fetch_jars, jars_directory, packages, user_cache

COPIES = """#!{python}
import pathlib, sys
(goal,) = [each for each in sys.argv if each.startswith("-DoutputDirectory=")]
out = pathlib.Path(goal.partition("=")[2])
out.mkdir()
(out / "delta.jar").write_text("jar")
"""
FAILS = """#!{python}
print("no such artifact")
raise SystemExit(1)
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """Takes the place of Maven."""

    def install(script):
        program = tmp_path / "bin" / "mvn"
        program.parent.mkdir()
        program.write_text(script.format(python=sys.executable))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))

    return install


def test_jars_are_fetched_once(tmp_path, maven):
    maven(COPIES)
    jars = fetch_jars(tmp_path / "cache")
    assert [jar.name for jar in jars.iterdir()] == ["delta.jar"]
    (tmp_path / "bin" / "mvn").unlink()
    assert fetch_jars(tmp_path / "cache") == jars


def test_nothing_is_left_of_jars_that_could_not_be_fetched(tmp_path, maven):
    maven(FAILS)
    with pytest.raises(Unavailable, match="no such artifact"):
        fetch_jars(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_another_pom_is_another_directory(tmp_path):
    assert jars_directory(tmp_path).name.startswith("spark-jars-")
    assert jars_directory(tmp_path).parent == tmp_path


def test_the_cache_is_where_the_user_has_it():
    assert user_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/sluice/components")
    assert user_cache({}) == Path.home() / ".cache" / "sluice" / "components"


def test_packages_are_what_the_pom_names_with_versions_filled_in():
    named = packages().split(",")
    assert len(named) == POM.read_text().count("<dependency>")
    assert all(name.count(":") == 2 and "$" not in name for name in named)
