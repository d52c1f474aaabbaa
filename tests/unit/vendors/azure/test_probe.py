from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from gateway.domain.credential import AzureUserDelegationSas, Credential
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Verdict
from gateway.errors import Unavailable
from tests.unit.vendors.azure.doubles import ACCOUNT, NOON, FakeHttp, FakeTokens
from vendors.azure.probe import AzureProbe
from vendors.http import Reply

TABLE = parse_location("abfss://tables@lakeaccount.dfs.core.windows.net/a b/t%41")
ROOT = parse_location("abfss://tables@lakeaccount.dfs.core.windows.net")
BASE = "https://lakeaccount.blob.core.windows.net/tables"
SAS = Credential(
    id="x", secret=AzureUserDelegationSas(sas_token="sv=1&sig=s"), expires_at=NOON + timedelta(hours=1)
)


async def attempted(answer, action=Action.READ, path="x", *, credential=SAS, at=TABLE):
    http = FakeHttp(answer if callable(answer) else lambda _: answer)
    attempt = await AzureProbe(ACCOUNT, FakeTokens(), http).attempt(credential, action, at, path)
    return attempt, http.requests


def refused(status: int, code: str = "", detail: str = "") -> Reply:
    body = (
        f"<Error><Code>{code}</Code><AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>"
    )
    return Reply(status=status, headers={"x-ms-error-code": code} if code else {}, body=body.encode())


def page(*names: str, marker: str = "", directories: tuple[str, ...] = ()) -> Reply:
    blobs = "".join(f"<Blob><Name>{name}</Name><Properties/></Blob>" for name in names)
    folder = "<Properties><ResourceType>directory</ResourceType></Properties>"
    blobs += "".join(f"<Blob><Name>{name}</Name>{folder}</Blob>" for name in directories)
    body = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
    return Reply(status=200, body=body.encode())


VERDICTS = [
    (Reply(status=200), Verdict.ALLOWED),
    (Reply(status=201), Verdict.ALLOWED),
    (refused(409, "BlobAlreadyExists"), Verdict.ALLOWED),
    (refused(412, "ConditionNotMet"), Verdict.ALLOWED),
    (refused(404, "BlobNotFound"), Verdict.MISSING),
    (refused(404, "PathNotFound"), Verdict.MISSING),
    (refused(404, "ContainerNotFound"), Verdict.FAILED),
    (refused(403, "AuthorizationPermissionMismatch"), Verdict.DENIED),
    (refused(403, "AuthorizationFailure"), Verdict.DENIED),
    (refused(403, "AuthenticationFailed", "Signature did not match."), Verdict.DENIED),
    (refused(403, "AuthenticationFailed", "Signed Directory Depth Invalid"), Verdict.DENIED),
    (
        refused(403, "AuthenticationFailed", "Signature not valid in the specified time frame"),
        Verdict.FAILED,
    ),
    (refused(403, "AuthenticationFailed", "Signed expiry time must be after"), Verdict.FAILED),
    (refused(403, "AuthorizationProtocolMismatch"), Verdict.FAILED),
    (refused(403, "AccountIsDisabled"), Verdict.FAILED),
    (refused(403), Verdict.FAILED),
    (refused(401, "NoAuthenticationInformation"), Verdict.FAILED),
    (refused(400, "InvalidQueryParameterValue"), Verdict.FAILED),
    (refused(429), Verdict.FAILED),
    (refused(503, "ServerBusy"), Verdict.FAILED),
    (Reply(status=302, headers={"location": "https://elsewhere"}), Verdict.FAILED),
    (Unavailable("Azure does not answer"), Verdict.FAILED),
]


async def test_answer_is_judged_alike_for_every_action():
    wrong = []
    for (answer, verdict), action in itertools.product(VERDICTS, Action):
        is_list = action is Action.LIST and isinstance(answer, Reply) and answer.status < 300
        attempt, _ = await attempted(page() if is_list else answer, action)
        if attempt.verdict is not verdict:
            wrong.append((action, answer, verdict, attempt.verdict))

    assert wrong == []


async def test_own_identity_that_is_not_believed_is_no_denial():
    attempt, _ = await attempted(refused(403, "AuthenticationFailed"), credential=None)

    assert attempt.verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("action", "method"), [(Action.READ, "GET"), (Action.WRITE, "PUT"), (Action.DELETE, "DELETE")]
)
async def test_sas_is_used_on_the_literal_name(action, method):
    _, (request,) = await attempted(Reply(status=200), action, "é+/x")

    assert request.method == method
    assert request.url == f"{BASE}/a%20b/t%2541/%C3%A9%2B/x?sv=1&sig=s"
    assert "authorization" not in request.headers


async def test_write_replaces_nothing():
    _, (request,) = await attempted(Reply(status=201), Action.WRITE)

    assert request.headers["if-none-match"] == "*"
    assert request.headers["x-ms-blob-type"] == "BlockBlob"


async def test_own_identity_uses_its_token():
    _, (request,) = await attempted(Reply(status=200), credential=None)

    assert request.headers["authorization"] == "Bearer own-token"
    assert request.headers["x-ms-version"] == "2023-11-03"
    assert request.url == f"{BASE}/a%20b/t%2541/x"


async def test_listing_is_by_prefix_and_names_are_relative():
    answer = page("a b/t%41/x", "a b/t%41/d/y", directories=("a b/t%41/d",))
    attempt, (request,) = await attempted(answer, Action.LIST, "")

    assert attempt.names == ("x", "d/y")
    assert request.url == f"{BASE}?restype=container&comp=list&prefix=a%20b%2Ft%2541%2F&sv=1&sig=s"


async def test_listing_of_the_root_gives_whole_names():
    attempt, (request,) = await attempted(page("x", "a/y"), Action.LIST, "", at=ROOT)

    assert attempt.names == ("x", "a/y")
    assert request.url == f"{BASE}?restype=container&comp=list&prefix=&sv=1&sig=s"


async def test_listing_follows_its_pages():
    def answer(request):
        return page("a b/t%41/y") if "marker=m%201" in request.url else page("a b/t%41/x", marker="m 1")

    attempt, requests = await attempted(answer, Action.LIST, "")

    assert attempt.names == ("x", "y")
    assert len(requests) == 2


async def test_listing_that_never_ends_is_given_up():
    _, requests = await attempted(page(marker="m"), Action.LIST, "")

    assert len(requests) == 20


async def test_listing_that_is_refused_later_is_refused():
    def answer(request):
        return (
            refused(403, "AuthorizationPermissionMismatch") if "marker" in request.url else page(marker="m")
        )

    attempt, _ = await attempted(answer, Action.LIST, "")

    assert attempt.verdict is Verdict.DENIED


async def test_listing_that_is_no_xml_has_failed():
    attempt, _ = await attempted(Reply(status=200, body=b"{}"), Action.LIST, "")

    assert attempt.verdict is Verdict.FAILED


async def test_name_that_xml_cannot_hold_is_decoded():
    body = b'<E><Blobs><Blob><Name Encoded="true">a%20b/t%2541/%EF%BF%BE</Name></Blob></Blobs></E>'
    attempt, _ = await attempted(Reply(status=200, body=body), Action.LIST, "")

    assert attempt.names == ("\ufffe",)


async def test_detail_holds_the_code_and_nothing_of_the_sas():
    attempt, _ = await attempted(refused(403, "AuthenticationFailed", "sig=s did not match"))

    assert attempt.detail == "403 AuthenticationFailed"


async def test_other_container_of_the_account_can_be_tried():
    other = parse_location("abfss://other@lakeaccount.dfs.core.windows.net/t")
    _, (request,) = await attempted(Reply(status=200), at=other)

    assert request.url == "https://lakeaccount.blob.core.windows.net/other/t/x?sv=1&sig=s"
