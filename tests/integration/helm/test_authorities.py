"""Who signs certificates, and whom processes believe."""

from __future__ import annotations

import pytest

from tests.components import HELM3
from tests.integration.helm.chart import pod, render

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_authorities_of_a_bundle_take_the_place_of_each_secrets_own(kind):
    bundle = {"kind": kind, "name": "authorities", "key": "all.pem"}
    rendered = render(values={"tls": {"caBundle": bundle}})
    for name, process in rendered.processes.items():
        (volume,) = [each for each in pod(process)["volumes"] if each["name"] == "tls"]
        own, authorities = volume["projected"]["sources"]
        assert own["secret"]["name"] == f"sluice-{name}-tls"
        # Not its ca.crt: two sources with one path are refused.
        assert {item["path"] for item in own["secret"]["items"]} == {"tls.crt", "tls.key"}
        part = authorities["secret" if kind == "Secret" else "configMap"]
        assert part == {"name": "authorities", "items": [{"key": "all.pem", "path": "ca.crt"}]}


def test_the_charts_own_authority_keeps_its_key_when_it_is_renewed_and_certificates_do_not():
    certificates = render(values={"tls": {"source": "certManager"}}).of("Certificate")
    policies = {name: each["spec"]["privateKey"]["rotationPolicy"] for name, each in certificates.items()}
    assert policies.pop("sluice-ca") == "Never"
    assert set(policies.values()) == {"Always"}


def test_platform_services_in_other_namespaces_have_an_issuer_that_signs_there():
    rendered = render("aws")
    assert rendered.of("Issuer") == {}
    issuers = {each["spec"]["issuerRef"]["kind"] for each in rendered.of("Certificate").values()}
    assert issuers == {"ClusterIssuer"}
