"""The programs themselves find nothing wrong with the files that are shipped."""

from __future__ import annotations

import subprocess

import pytest

from tests.components import ENVOY, NGINX
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.front import EdgeAddress
from tests.proxies.front_envoy import envoy_command, place_envoy
from tests.proxies.front_nginx import nginx_command, place_nginx

EDGES = [EdgeAddress(port=8080, health_port=9401)]


@pytest.mark.component(ENVOY)
@pytest.mark.parametrize("jwt", ["jwt.yaml", "jwt-on.yaml"])
def test_envoy_takes_its_configuration(tmp_path, authority, jwt: str) -> None:
    place_envoy(tmp_path, new_ports(), EDGES, authority, {"/jwt.yaml": f"/{jwt}"})
    done = subprocess.run(
        [*envoy_command(tmp_path), "--mode", "validate"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # What is deprecated, or means nothing, is warned of.
    assert done.stderr == ""


@pytest.mark.component(NGINX)
@pytest.mark.system
@pytest.mark.parametrize("jwt", ["# include jwt.conf;", "include jwt.conf;"])
def test_nginx_takes_its_configuration(tmp_path, authority, jwt: str) -> None:
    place_nginx(tmp_path, new_ports(), EDGES, authority, {"# include jwt.conf;": jwt})
    done = subprocess.run([*nginx_command(tmp_path), "-t"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


@pytest.mark.component(NGINX)
@pytest.mark.system
def test_nginx_refuses_tls_to_edges_whose_authority_it_is_not_told(tmp_path, authority) -> None:
    changes = {"proxy_pass http://edges;": "proxy_pass https://edges;"}
    place_nginx(tmp_path, new_ports(), EDGES, authority, changes)
    done = subprocess.run([*nginx_command(tmp_path), "-t"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "proxy_ssl_trusted_certificate" in done.stderr
