"""JWTs that are checked in front, once that is turned on, which needs no restart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.certificates import Authority
from tests.components import ENVOY, NGINX
from tests.integration.api_gateway.conftest import new_ports
from tests.integration.api_gateway.verifier import Verifier, verifying
from tests.ports import free_port
from tests.proxies.front import PREFIX, Front, StartFront
from tests.proxies.front_nginx import reload_nginx
from tests.proxies.recording_edge import RecordingEdge
from tests.waiting import eventually

ISSUER, AUDIENCE = "https://issuer.example.com", "https://share.example.com/delta-sharing"
SHARES = f"{PREFIX}/shares"
KEY = ec.generate_private_key(ec.SECP256R1())
NO_KEYS = '{"keys": []}'
ENVOY_ONLY = pytest.mark.parametrize(
    "kind", [pytest.param("envoy", marks=pytest.mark.component(ENVOY))], indirect=True
)
NGINX_ONLY = pytest.mark.parametrize(
    "kind", [pytest.param("nginx", marks=[pytest.mark.component(NGINX), pytest.mark.system])], indirect=True
)

PublicKeys = Sequence[ec.EllipticCurvePublicKey]


@dataclass(frozen=True, slots=True)
class Checking:
    """A front that has been told to check JWTs while it ran."""

    kind: str
    front: Front
    verifier: Verifier

    def turn_on(self) -> None:
        if self.kind == "nginx":
            file = self.front.directory / "nginx.conf"
            file.write_text(file.read_text().replace("# include jwt.conf;", "include jwt.conf;"))
            reload_nginx(self.front)
        else:
            self.accept([KEY.public_key()])

    def accept(self, keys: PublicKeys) -> None:
        """Change the issuer's keys, as the docs say: in Envoy's file, or in what nginx asks."""
        self.verifier.keys[:] = keys
        if self.kind == "envoy":
            put_keys(self.front.directory, keys)


def put_keys(directory: Path, keys: PublicKeys) -> None:
    """Move a file with keys over the one that is in force."""
    jwks = [
        ECAlgorithm.to_jwk(key, as_dict=True) | {"kid": key_id(key), "alg": "ES256", "use": "sig"}
        for key in keys
    ]
    shipped, fresh = (directory / "jwt-on.yaml").read_text(), directory / "jwt.new"
    assert NO_KEYS in shipped
    fresh.write_text(shipped.replace(NO_KEYS, json.dumps({"keys": jwks})))
    fresh.replace(directory / "jwt.yaml")


def key_id(key: ec.EllipticCurvePublicKey) -> str:
    return str(key.public_numbers().x)


@contextmanager
def checked(
    kind: str,
    start: StartFront,
    edges: Sequence[RecordingEdge],
    authority: Authority,
    directory: Path,
    changes: Mapping[str, str] | None = None,
) -> Iterator[Checking]:
    with verifying(KEY.public_key(), ISSUER, AUDIENCE) as verifier:
        own = {"127.0.0.1:9402": f"127.0.0.1:{verifier.port}"} if kind == "nginx" else {}
        addresses = [edge.address for edge in edges]
        with start(directory, new_ports(), addresses, authority, changes=own | dict(changes or {})) as front:
            yield Checking(kind, front, verifier)


@pytest.fixture(scope="module")
def checking(kind, start, two_recording_edges, authority, tmp_path_factory) -> Iterator[Checking]:
    directory = tmp_path_factory.mktemp("front")
    with checked(kind, start, two_recording_edges, authority, directory) as checking:
        assert checking.front.ask(SHARES).status == 200
        checking.turn_on()
        eventually(lambda: checking.front.ask(SHARES).status == 401)
        yield checking


@pytest.fixture(scope="module")
def front(checking: Checking) -> Front:
    return checking.front


@pytest.fixture
def recorded(two_recording_edges: list[RecordingEdge]) -> list[RecordingEdge]:
    for edge in two_recording_edges:
        edge.reset()
    return two_recording_edges


def token(key: ec.EllipticCurvePrivateKey = KEY, **claims: object) -> str:
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "acme", "exp": int(time.time()) + 600}
    return jwt.encode(good | claims, key, "ES256", {"kid": key_id(key.public_key())})


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_a_valid_token_passes_and_reaches_the_edge_as_it_is(front: Front, recorded) -> None:
    sent = bearer(token())
    assert front.ask(SHARES, headers=sent).status == 200
    (asked,) = [asked for edge in recorded for asked in edge.asked]
    assert asked.all("authorization") == [sent["Authorization"]]


# Made in the test: tokens of the collection would have expired by then, whatever else is wrong with them.
INVALID: dict[str, Callable[[], dict[str, str]]] = {
    "none": dict,
    "opaque": lambda: bearer("slc_opaque"),
    "expired": lambda: bearer(token(exp=int(time.time()) - 600)),
    "other issuer": lambda: bearer(token(iss="https://evil.example")),
    "other audience": lambda: bearer(token(aud="https://other.example")),
    "other key": lambda: bearer(token(ec.generate_private_key(ec.SECP256R1()))),
    "without its signature": lambda: bearer(token().rpartition(".")[0] + "."),
}


@pytest.mark.parametrize("case", INVALID)
def test_whoever_has_no_valid_one_does_not_reach_an_edge(front: Front, recorded, case: str) -> None:
    answer = front.ask(SHARES, headers=INVALID[case]())
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


def test_an_issuers_new_key_is_taken_up_and_its_old_one_refused_without_a_restart(
    checking: Checking, recorded
) -> None:
    new_key = ec.generate_private_key(ec.SECP256R1())
    old, new = bearer(token()), bearer(token(new_key))

    def answers() -> tuple[int, int]:
        return checking.front.ask(SHARES, headers=old).status, checking.front.ask(SHARES, headers=new).status

    assert answers() == (200, 401)
    try:
        checking.accept([KEY.public_key(), new_key.public_key()])
        eventually(lambda: answers() == (200, 200))
        checking.accept([new_key.public_key()])
        eventually(lambda: answers() == (401, 200))
    finally:
        checking.accept([KEY.public_key()])
    eventually(lambda: answers() == (200, 401))


@ENVOY_ONLY
def test_a_prefix_that_was_changed_in_envoys_file_alone_leads_nobody_around_the_check(
    kind, start, recorded, authority, tmp_path
) -> None:
    changes = {"path_separated_prefix: /delta-sharing": "path_separated_prefix: /share"}
    with checked(kind, start, recorded, authority, tmp_path / "front", changes) as checking:
        front = checking.front
        assert front.ask("/share/shares").status == 200
        checking.turn_on()
        eventually(lambda: front.ask("/share/shares").status == 401)
        for edge in recorded:
            edge.reset()
        for path in ("/share", "/share/files/x", "/share/shares/s/schemas", "/share/delta-sharing/files/x"):
            assert front.ask(path).status == 401
        assert not [edge for edge in recorded if edge.asked]
        assert front.ask("/share/shares", headers=bearer(token())).status == 200


@NGINX_ONLY
def test_nginx_verifier_is_told_of_a_token_and_nothing_that_the_client_made_up(
    checking: Checking, recorded
) -> None:
    checking.verifier.told.clear()
    made_up = {"X-Forwarded-For": "6.6.6.6", "X-Real-IP": "6.6.6.6", "Cookie": "a=b", "X-Request-Id": "mine"}
    sent = bearer(token())
    path = f"{SHARES}?sig=the-right-to-read"
    assert checking.front.ask(path, headers={**sent, **made_up}).status == 200
    (told,) = checking.verifier.told
    assert told.pop("authorization") == sent["Authorization"]
    assert told.pop("x-original-uri") == SHARES
    assert told.pop("x-request-id") != "mine"
    assert set(told) <= {"host", "connection"}


@NGINX_ONLY
def test_nobody_is_let_in_when_nobody_verifies(start, recorded, authority, tmp_path) -> None:
    addresses = [edge.address for edge in recorded]
    changes = {"127.0.0.1:9402": f"127.0.0.1:{free_port()}", "# include jwt.conf;": "include jwt.conf;"}
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=changes) as front:
        answer = front.ask(SHARES, headers=bearer(token()))
    assert (answer.status, answer.json["errorCode"]) == (503, "TEMPORARILY_UNAVAILABLE")
    assert not [edge for edge in recorded if edge.asked]


@ENVOY_ONLY
def test_an_envoy_that_has_no_keys_to_check_with_lets_nobody_in(start, recorded, authority, tmp_path) -> None:
    addresses = [edge.address for edge in recorded]
    changes = {"/jwt.yaml": "/jwt-on.yaml"}
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=changes) as front:
        answer = front.ask(SHARES, headers=bearer(token()))
    assert answer.status == 500
    assert not [edge for edge in recorded if edge.asked]
