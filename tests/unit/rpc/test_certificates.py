from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from gateway.errors import InvalidArgument
from gateway.ports import utcnow
from gateway.rpc.certificates import Certificates, Material, read_material
from tests.cases import each_case
from tests.certificates import new_authority


@pytest.fixture
def authority(tmp_path):
    return new_authority(tmp_path / "pki")


@each_case(
    ("broken", "message"),
    [
        ("certificate", "cannot be used with the key"),
        ("key", "cannot be used with the key"),
        ("ca", "no cert"),
    ],
)
@each_case("content", ["junk", "", None], ids=["junk", "empty", "missing"])
def test_what_is_not_pem_is_named(authority, broken, message, content):
    tls = authority.issue("edge")
    file = Path(getattr(tls, broken))
    file.unlink()
    if content is not None:
        file.write_text(content)

    with pytest.raises(InvalidArgument, match=message):
        read_material(tls)


def test_the_key_of_another_certificate_is_refused(authority):
    one, other = authority.issue("one"), authority.issue("other")

    with pytest.raises(InvalidArgument, match="cannot be used with the key"):
        read_material(one.model_copy(update={"key": other.key}))


def test_an_encrypted_key_is_refused(authority):
    tls = authority.issue("edge")
    key = serialization.load_pem_private_key(Path(tls.key).read_bytes(), None)
    Path(tls.key).write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )

    with pytest.raises(InvalidArgument, match="not encrypted"):
        read_material(tls)


def test_renewed_files_are_taken_up_once(authority):
    tls = authority.issue("edge")
    certificates = Certificates(tls)
    before = certificates.material

    assert not certificates.renew()
    assert certificates.material is before
    authority.issue("edge")
    assert certificates.renew()
    assert certificates.material == read_material(tls) != before


def test_half_of_a_renewed_pair_changes_nothing(authority):
    tls = authority.issue("edge")
    certificates = Certificates(tls)
    before = certificates.material
    shutil.copy(authority.issue("other").certificate, tls.certificate)

    with pytest.raises(InvalidArgument, match="cannot be used with the key"):
        certificates.renew()

    assert certificates.material is before


def test_a_renewed_certificate_that_has_expired_changes_nothing(authority):
    tls, clock = authority.issue("edge"), [utcnow()]
    certificates = Certificates(tls, lambda: clock[0])
    before = certificates.material
    authority.issue("edge")
    clock[0] += timedelta(days=2)

    with pytest.raises(InvalidArgument, match="has expired already"):
        certificates.renew()

    assert certificates.material is before


def test_a_key_is_not_shown(authority):
    material = read_material(authority.issue("edge"))

    assert "PRIVATE" not in repr(material)


def test_material_trusts_all_of_another_while_it_leaves_none_of_its_authorities_out(authority, tmp_path):
    one, other = authority.ca.read_bytes(), new_authority(tmp_path / "other").ca.read_bytes()

    def trusting(*authorities: bytes) -> Material:
        # Told apart by what they are, not by how they are written.
        return Material(b"", b"", b"\n# a comment\n".join(authorities))

    assert trusting(one).trusts_all_of(trusting(one))
    assert trusting(other, one).trusts_all_of(trusting(one))
    assert trusting(other, one).trusts_all_of(trusting(one, other))
    assert not trusting(one).trusts_all_of(trusting(one, other))
    assert not trusting(other).trusts_all_of(trusting(one))
