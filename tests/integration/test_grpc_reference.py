"""The generated reference is fresh, and is refused when it is not or cannot be."""

from __future__ import annotations

import pytest

from tests.components import BUF
from tests.repository import ROOT, Repository

CHECK = (".ci/check-proto", "documented")
PAGE = "docs/reference/grpc.md"
SERVICE_CONFIG = "docs/examples/platform/service-config.json"

pytestmark = pytest.mark.component(BUF)


@pytest.fixture
def repository(tmp_path):
    return Repository.of(tmp_path, "proto", "gateway", "deploy/dev", "docs", ".ci")


def test_the_reference_is_what_the_protos_and_the_code_say(repository):
    result = repository.run(*CHECK)
    assert result.returncode == 0, result.stderr


def test_changes_without_generating_are_stale(repository):
    repository.replace(
        "gateway/services/presign/codec.py", "MAX_PATHS: Final = 4000", "MAX_PATHS: Final = 5000"
    )
    repository.replace("gateway/rpc/service_config.py", '"maxAttempts": 3', '"maxAttempts": 4')
    result = repository.run(*CHECK)
    assert result.returncode == 1
    for stale in (PAGE, SERVICE_CONFIG):
        assert f"{stale} is not what the protos and the code say: run `make proto`" in result.stderr


def test_what_has_no_comment_is_refused_by_name(repository):
    repository.replace(
        "proto/gateway/v1/presign.proto", "  bytes paths = 3;", "  bytes paths = 3;\n  bool new = 9;"
    )
    result = repository.run(*CHECK)
    assert result.returncode == 1
    assert "the field SignRequest.new has no comment" in result.stderr


def test_every_service_and_message_stands_in_the_reference():
    page = (ROOT / PAGE).read_text()
    headings = {line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")}
    assert {
        "Catalog",
        "Snapshot",
        "Presign",
        "Vending",
        "QueryRequest",
        "IssueResponse",
        "Audience",
    } <= headings
    assert "<!--" in page
