"""Gets a credential that opens a table's directory, and says what it is; the secret itself is not printed.

    python get_credential.py --catalog HOST:PORT --vending HOST:PORT \\
        --certificate tls.crt --key tls.key --ca ca.crt share.schema.table
"""

from __future__ import annotations

import json
import sys

import grpc
from sluice import CALL_TIMEOUT, Grant, explain, identity_of, parse_arguments, patiently

from gateway.v1 import catalog_pb2, vending_pb2, vending_pb2_grpc


def main() -> int:
    arguments = parse_arguments("catalog", "vending")
    identity = identity_of(arguments)
    with identity.channel(arguments.catalog) as catalog, identity.channel(arguments.vending) as vending:
        grant = Grant(catalog, arguments.table, catalog_pb2.AUDIENCE_VENDING, arguments.recipient)
        stub = vending_pb2_grpc.VendingStub(vending)
        try:
            issued = patiently(
                lambda: stub.Issue(vending_pb2.IssueRequest(grant=grant.token), timeout=CALL_TIMEOUT)
            )
        except grpc.RpcError as error:
            sys.stderr.write(f"{explain(error)}\n")
            return 1
    json.dump(describe(issued), sys.stdout)
    return 0


def describe(issued: vending_pb2.IssueResponse) -> dict[str, object]:
    """Return what may be shown of a credential; ``issued.aws``, ``.azure`` or ``.gcp`` holds the keys."""
    return {
        "location": issued.location,
        "kind": issued.WhichOneof("credential"),
        "id": issued.credential_id,
        "expiresAtMs": issued.expires_at_ms,
    }


if __name__ == "__main__":
    sys.exit(main())
