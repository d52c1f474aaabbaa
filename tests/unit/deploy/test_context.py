from __future__ import annotations

from deploy.engine.context import is_sent, read_rules, sent_files, stage_context
from tests.cases import each_case
from tests.problems import assert_none
from tests.repository import ROOT

OURS = read_rules((ROOT / ".dockerignore").read_text())


@each_case(
    ("rules", "path", "sent"),
    [
        ("", "a", True),
        ("# a", "a", True),
        ("a", "a/b/c", False),
        ("*", "a/b", False),
        ("*\n!a", "a/b", True),
        ("*\n!a/b", "a/b/c", True),
        ("*\n!a/b", "a/c", False),
        ("*\n!a\n**/x", "a/b/x", False),
        ("**/*.pyc", "a.pyc", False),
        ("*.pyc", "a/b.pyc", True),
        ("a?", "ab", False),
        ("a?", "a/", True),
        ("/a/", "a", False),
    ],
)
def test_the_last_rule_that_matches_a_file_or_a_folder_above_holds(rules, path, sent):
    assert is_sent(path, read_rules(rules)) is sent


def test_what_is_not_named_stays_out_of_our_build():
    paths = [
        ".git/config",
        ".env",
        ".venv/bin/python",
        "deploy/compose/generated/keys/sealing",
        "deploy/compose/.env",
        "tests/deployments.py",
        "server.yaml",
        "id_rsa",
        "gateway/__pycache__/errors.cpython-311.pyc",
        "a-file-that-is-new",
    ]
    assert_none(f".dockerignore: {path} is sent to the build" for path in paths if is_sent(path, OURS))


def test_a_context_has_what_is_sent_and_nothing_else(tmp_path):
    source, place = tmp_path / "source", tmp_path / "place"
    for name in ("kept/a", "kept/x/b", "left/c", "d"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / ".dockerignore").write_text("*\n!kept\n**/x\n")
    stage_context(source, place)
    assert [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()] == ["kept/a"]


def test_our_context_is_small():
    files = list(sent_files(ROOT, OURS))
    assert {file.parts[0] for file in files} <= {
        *("LICENSE", "README.md", "pyproject.toml", "requirements.txt", "requirements-pipeline.txt"),
        *("gateway", "vendors", "pipeline", "deploy"),
    }
    assert sum((ROOT / file).stat().st_size for file in files) < 10_000_000
