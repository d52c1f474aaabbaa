from __future__ import annotations

from gateway.rpc.certificates import Certificates, read_material
from gateway.rpc.tls import channel_credentials, server_credentials
from tests.certificates import new_authority


def test_a_certificate_with_its_key_and_authority_will_do(tmp_path):
    tls = new_authority(tmp_path).issue("edge")

    server_credentials(Certificates(tls))
    channel_credentials(read_material(tls))
