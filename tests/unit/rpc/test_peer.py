from __future__ import annotations

from gateway.rpc.peer import peer_of
from tests.cases import each_case


class Context:
    def __init__(self, *, peer="ipv4:127.0.0.1:1", auth=None, metadata=()):
        self._peer, self._auth, self._metadata = peer, auth or {}, metadata

    def peer(self):
        return self._peer

    def auth_context(self):
        return self._auth

    def invocation_metadata(self):
        return self._metadata


def test_the_same_process_is_local():
    assert peer_of(Context(peer="local:")).local
    assert not peer_of(Context()).local


def test_all_names_of_a_certificate_count():
    auth = {
        "x509_subject_alternative_name": [b"spiffe://x/a", b"a.internal"],
        "x509_common_name": [b"a"],
        "transport_security_type": [b"ssl"],
    }

    assert peer_of(Context(auth=auth)).certificate_names == ("spiffe://x/a", "a.internal", "a")


@each_case(
    ("value", "bearer"),
    [("Bearer x.y.z", "x.y.z"), ("bearer x", "x"), ("Basic x", ""), ("", ""), ("Bearer", "")],
)
def test_only_a_bearer_token_is_one(value, bearer):
    assert peer_of(Context(metadata=(("authorization", value),))).bearer == bearer
