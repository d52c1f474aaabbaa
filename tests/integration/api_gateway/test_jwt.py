"""JWTs that are checked in front, once that is turned on, which needs no restart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.components import ENVOY, NGINX
from tests.deployments import free_port
from tests.http import eventually
from tests.integration.api_gateway.conftest import new_ports
from tests.integration.api_gateway.verifier import verifying
from tests.proxies.front import PREFIX, Front
from tests.proxies.front_nginx import reload_nginx
from tests.proxies.recording_edge import RecordingEdge

ISSUER, AUDIENCE = "https://issuer.example.com", "https://share.example.com/delta-sharing"
SHARES = f"{PREFIX}/shares"
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def front(kind, start, two_recording_edges, authority, tmp_path_factory) -> Iterator[Front]:
    """One that has been told to check JWTs while it ran."""
    directory = tmp_path_factory.mktemp("front")
    jwk = ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {"kid": "1", "alg": "ES256"}
    (directory / "jwks.json").write_text(json.dumps({"keys": [jwk]}))
    addresses = [edge.address for edge in two_recording_edges]
    with verifying(KEY.public_key(), ISSUER, AUDIENCE) as verifier:
        changes = {"127.0.0.1:9402": f"127.0.0.1:{verifier}"} if kind == "nginx" else {}
        with start(directory, new_ports(), addresses, authority, changes=changes) as front:
            assert front.ask(SHARES).status == 200
            TURN_ON[kind](front)
            eventually(lambda: front.ask(SHARES).status == 401)
            yield front


def turn_on_envoy(front: Front) -> None:
    (front.directory / "jwt-on.yaml").replace(front.directory / "jwt.yaml")


def turn_on_nginx(front: Front) -> None:
    file = front.directory / "nginx.conf"
    file.write_text(file.read_text().replace("# include jwt.conf;", "include jwt.conf;"))
    reload_nginx(front)


TURN_ON = {"envoy": turn_on_envoy, "nginx": turn_on_nginx}


@pytest.fixture
def recorded(two_recording_edges: list[RecordingEdge]) -> list[RecordingEdge]:
    for edge in two_recording_edges:
        edge.reset()
    return two_recording_edges


def token(key: ec.EllipticCurvePrivateKey = KEY, **claims: object) -> str:
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "acme", "exp": int(time.time()) + 600}
    return jwt.encode(good | claims, key, "ES256", {"kid": "1"})


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_a_valid_token_passes_and_reaches_the_edge_as_it_is(front: Front, recorded) -> None:
    sent = bearer(token())
    assert front.ask(SHARES, headers=sent).status == 200
    (asked,) = [asked for edge in recorded for asked in edge.asked]
    assert asked.all("authorization") == [sent["Authorization"]]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("slc_opaque"),
        bearer(token(exp=int(time.time()) - 600)),
        bearer(token(iss="https://evil.example")),
        bearer(token(aud="https://other.example")),
        bearer(token(ec.generate_private_key(ec.SECP256R1()))),
        bearer(token().rpartition(".")[0] + "."),
    ],
    ids=["none", "opaque", "expired", "other issuer", "other audience", "other key", "without its signature"],
)
def test_whoever_has_no_valid_one_does_not_reach_an_edge(front: Front, recorded, headers) -> None:
    answer = front.ask(SHARES, headers=headers)
    assert (answer.status, answer.json["errorCode"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert not [edge for edge in recorded if edge.asked]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/filesx",
        "/files/../shares",
        "/files%2F../shares",
        "/docs/../shares",
        "/shares/..%2Ffiles/x",
        "/shares/..%2Fdocs",
        "/files%2Fx",
        "%2Fdocs",
        "%2Fopenapi.json",
    ],
)
def test_no_path_leads_around_the_check(front: Front, recorded, path: str) -> None:
    # nginx refuses dot segments before it looks at tokens, and encoded slashes where it needs none.
    assert front.ask(PREFIX + path).status in {401, 400, 404}
    assert not [edge for edge in recorded if edge.asked]


@pytest.mark.parametrize("path", ["/files/lake/x.parquet?sig=1", "/docs", "/openapi.json"])
def test_what_needs_no_token_needs_none_here_either(front: Front, recorded, path: str) -> None:
    assert front.ask(PREFIX + path).status == 200


@pytest.mark.parametrize(
    "kind", [pytest.param("nginx", marks=[pytest.mark.component(NGINX), pytest.mark.system])], indirect=True
)
def test_nobody_is_let_in_when_nobody_verifies(start, recorded, authority, tmp_path) -> None:
    addresses = [edge.address for edge in recorded]
    changes = {"127.0.0.1:9402": f"127.0.0.1:{free_port()}", "# include jwt.conf;": "include jwt.conf;"}
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=changes) as front:
        answer = front.ask(SHARES, headers=bearer(token()))
    assert (answer.status, answer.json["errorCode"]) == (503, "TEMPORARILY_UNAVAILABLE")
    assert not [edge for edge in recorded if edge.asked]


@pytest.mark.parametrize("kind", [pytest.param("envoy", marks=pytest.mark.component(ENVOY))], indirect=True)
def test_an_envoy_that_has_no_keys_to_check_with_lets_nobody_in(start, recorded, authority, tmp_path) -> None:
    addresses = [edge.address for edge in recorded]
    changes = {"/jwt.yaml": "/jwt-on.yaml"}
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=changes) as front:
        answer = front.ask(SHARES, headers=bearer(token()))
    assert answer.status == 500
    assert not [edge for edge in recorded if edge.asked]
