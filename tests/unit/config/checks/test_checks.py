from __future__ import annotations


def test_every_check_reports_in_one_go(faults_of):
    faults = faults_of(
        """
shares: [{name: 'a b'}]
storages: [{name: x, prefix: nowhere, vendor: local}]
recipients: [{name: ' y'}]
endpoint: x
services: {listen: nowhere}
keys: {current: {secret: short}}
"""
    )
    assert list(faults) == [
        "shares[0].name",
        "storages[0].prefix",
        "recipients[0].name",
        "endpoint",
        "services.listen",
        "keys.current.secret",
    ]
