from __future__ import annotations

import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from vendors.aws.config import parse
from vendors.aws.cutter import POLICY_NAME, AwsCutter, denial, document, merge

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role/sharing/vended"


class FakeIam:
    """Keeps the role's policy as IAM does."""

    def __init__(self, policy: Any = None, error: str = "") -> None:
        self.policy = policy
        self.error = error
        self.closed = 0
        # What others put in the policy's place, each when this one waits for the next time.
        self.others: list[Any] = []

    def get_role_policy(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"RoleName": "vended", "PolicyName": POLICY_NAME}
        if self.policy is None:
            raise refusal("NoSuchEntity")
        return {"PolicyDocument": self.policy}

    def put_role_policy(self, **asked: Any) -> None:
        if self.error:
            raise refusal(self.error)
        assert (asked["RoleName"], asked["PolicyName"]) == ("vended", POLICY_NAME)
        self.policy = json.loads(asked["PolicyDocument"])

    def let_others(self, seconds: float) -> None:
        assert seconds > 0
        if self.others:
            self.policy = self.others.pop(0)

    def close(self) -> None:
        self.closed += 1


def refusal(code: str) -> ClientError:
    response = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    return ClientError(response, "PutRolePolicy")


@pytest.fixture
def open_cutter():
    with ThreadPoolExecutor(1) as threads:

        def open_cutter(iam: FakeIam, *, put: bool = True, tags: bool = True) -> AwsCutter:
            options = parse(
                {
                    "region": "eu-west-1",
                    "identity": {"kind": "chain"},
                    "role": {"arn": ROLE},
                    "sessionTags": tags,
                    "revocation": {"putRolePolicy": put},
                }
            )
            assert options.role is not None
            return AwsCutter(
                options,
                options.role,
                open_iam=lambda: iam,
                threads=threads,
                clock=lambda: NOON,
                sleep=iam.let_others,
            )

        yield open_cutter


async def test_the_role_denies_the_recipients_older_sessions(open_cutter):
    iam = FakeIam()

    cut = await open_cutter(iam).cut_off("acme", NOON)

    assert cut.done
    assert iam.policy == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Action": "*",
                "Resource": "*",
                "Condition": {
                    "DateLessThan": {"aws:TokenIssueTime": "2026-05-01T12:00:00Z"},
                    "StringEquals": {"aws:PrincipalTag/sluice:recipient": "acme"},
                },
            }
        ],
    }
    assert iam.closed == 1


async def test_without_tags_sessions_are_known_by_their_name(open_cutter):
    iam = FakeIam()

    await open_cutter(iam, tags=False).cut_off("acme corp", NOON)

    condition = iam.policy["Statement"][0]["Condition"]
    assert condition["StringLike"]["aws:userid"].startswith("*:acme_corp-")


async def test_each_recipient_keeps_its_latest_denial(open_cutter):
    iam = FakeIam()
    cutter = open_cutter(iam)
    await cutter.cut_off("acme", NOON - timedelta(hours=1))
    await cutter.cut_off("other", NOON)
    await cutter.cut_off("acme", NOON)

    found = [
        (
            statement["Condition"]["StringEquals"]["aws:PrincipalTag/sluice:recipient"],
            statement["Condition"]["DateLessThan"]["aws:TokenIssueTime"],
        )
        for statement in iam.policy["Statement"]
    ]
    assert found == [("other", "2026-05-01T12:00:00Z"), ("acme", "2026-05-01T12:00:00Z")]


def test_an_earlier_cut_does_not_undo_a_later_one():
    later, earlier = (denial("acme", NOON - timedelta(hours=hours), by_tag=True) for hours in (0, 1))

    assert merge([later], earlier, NOON) == [later]


def test_a_denial_older_than_any_session_is_dropped():
    old = denial("old", NOON - timedelta(hours=12, seconds=1), by_tag=True)
    kept = denial("kept", NOON - timedelta(hours=12), by_tag=True)
    new = denial("new", NOON, by_tag=True)

    assert merge([old, kept], new, NOON) == [kept, new]


def test_what_somebody_else_put_there_is_kept():
    foreign = {"Effect": "Deny", "Action": "s3:*", "Resource": "*"}
    new = denial("new", NOON, by_tag=True)

    assert merge([foreign], new, NOON) == [foreign, new]


def test_a_denial_for_good_that_somebody_else_put_there_is_kept():
    new = denial("acme", NOON, by_tag=True)
    whose = {name: value for name, value in new["Condition"].items() if name != "DateLessThan"}
    foreign = {**new, "Condition": whose}

    assert merge([foreign], new, NOON) == [foreign, new]


async def test_a_denial_that_another_run_has_lost_is_put_again(open_cutter):
    kept, other, mine = (denial(name, NOON, by_tag=True) for name in ("kept", "other", "acme"))
    foreign = [{"Effect": "Deny", "Action": action, "Resource": "*"} for action in ("s3:*", "kms:*")]
    iam = FakeIam(policy=json.loads(document([*foreign, kept])))
    # It had read the policy before any of these stood there.
    iam.others = [json.loads(document([other]))]

    cut = await open_cutter(iam).cut_off("acme", NOON)

    assert cut.done
    assert iam.policy["Statement"] == [other, *foreign, kept, mine]


async def test_a_denial_that_is_lost_again_and_again_is_not_called_done(open_cutter):
    iam = FakeIam()
    iam.others = [json.loads(document([denial("other", NOON, by_tag=True)])) for _ in range(10)]

    cut = await open_cutter(iam).cut_off("acme", NOON)

    assert not cut.done
    assert "others write the policy" in cut.words


async def test_a_later_denial_by_another_run_will_do(open_cutter):
    later = json.loads(document([denial("acme", NOON + timedelta(hours=1), by_tag=True)]))
    iam = FakeIam()
    iam.others = [later]

    assert (await open_cutter(iam).cut_off("acme", NOON)).done
    assert iam.policy == later


async def test_a_policy_that_arrives_percent_encoded_is_read(open_cutter):
    iam = FakeIam(policy="%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%5D%7D")

    assert (await open_cutter(iam).cut_off("acme", NOON)).done
    assert len(iam.policy["Statement"]) == 1


async def test_where_it_may_not_the_operator_is_told_the_command(open_cutter):
    iam = FakeIam()

    cut = await open_cutter(iam, put=False).cut_off("it's acme", NOON)

    assert not cut.done
    assert iam.policy is None
    _, _, command = cut.words.partition("earlier revocation): ")
    words = shlex.split(command)
    assert words[:3] == ["aws", "iam", "put-role-policy"]
    assert words[4] == "vended"
    assert json.loads(words[-1])["Statement"][0]["Effect"] == "Deny"


async def test_a_refusal_by_iam_is_not_taken_for_a_cut(open_cutter, caplog):
    cut = await open_cutter(FakeIam(error="AccessDenied")).cut_off("acme", NOON)

    assert not cut.done
    assert "AccessDenied" in cut.words
    assert "aws iam put-role-policy" in cut.words
    assert len(caplog.records) == 1


async def test_too_many_denials_are_refused_and_nothing_is_dropped(open_cutter):
    statements = [denial(f"recipient-{number:04}", NOON, by_tag=True) for number in range(60)]
    before = json.loads(document(statements))
    iam = FakeIam(policy=before)

    cut = await open_cutter(iam).cut_off("acme", NOON)

    assert not cut.done
    assert iam.policy == before


@given(st.text(max_size=300), st.booleans())
def test_every_denial_is_json_without_a_variable_or_a_quote(recipient, by_tag):
    statement = denial(recipient, NOON, by_tag=by_tag)

    assert json.loads(document([statement]))["Statement"] == [statement]
    assert not set("$'?\"") & set(json.dumps(statement["Condition"], ensure_ascii=False).replace('"', ""))
