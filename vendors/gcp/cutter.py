"""Says how tokens that are already out are cut off at Google."""

from __future__ import annotations

from datetime import datetime, timedelta

from gateway.ports import Cut
from vendors.gcp.identity import LONGEST


class GcpCutter:
    """Google has no call that revokes one downscoped token, so it only says what there is."""

    everybody = ""
    consequence = ""

    def __init__(self, *, bucket: str, account: str | None, impersonates: bool = False) -> None:
        self._bucket = bucket
        # Only an impersonation is asked for a life; other tokens live as long as Google gives them.
        self._life = None if impersonates else LONGEST
        self._account = account or "SERVICE_ACCOUNT_EMAIL"

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        ends_at = (issued_before + LONGEST + timedelta(seconds=1)).replace(microsecond=0)
        words = (
            f"Google cannot revoke a single token: what {recipient} holds ends by itself, "
            f"at the latest at {ends_at.isoformat()}. To end it sooner, for every recipient of this storage: "
            f"`gcloud iam service-accounts disable {self._account}` makes Google reject all its tokens, "
            "until it is enabled again; or take its role away, "
            f"`gcloud storage buckets remove-iam-policy-binding gs://{self._bucket} "
            f"--member=serviceAccount:{self._account} --role=roles/storage.objectViewer`, "
            "which takes about 2 minutes, at times 7 or more"
        )
        return Cut(done=False, words=words, life=self._life)
