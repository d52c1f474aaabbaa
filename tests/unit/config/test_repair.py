from __future__ import annotations

from gateway.config.repair import repair
from gateway.config.schema import Config
from tests.cases import each_case

TABLE = ("shares", 0, "schemas", 0, "tables", 0)
TOKENS = ("recipients", 0, "tokens")


def below(path, *keys):
    return [(*path, key) for key in keys]


@each_case(
    ("data", "paths"),
    [
        ({"port": "x", "shares": "y"}, [("port",), ("shares",)]),
        ({"keys": "x", "authorization": "y"}, [("keys",), ("authorization",)]),
        ({"shares": ["x", {"name": "a"}]}, [("shares", 0)]),
        ({"shares": [{}]}, [("shares", 0, "name")]),
        (
            {"shares": [{"name": "a", "schemas": [{"name": "b", "tables": [{}]}]}]},
            below(TABLE, "name", "location"),
        ),
        (
            {"recipients": [{"name": "a", "tokens": [{"hash": "x"}, "y"]}]},
            [(*TOKENS, 0, "hash"), (*TOKENS, 1)],
        ),
        (
            {"services": {"run": ["x"], "addresses": {"y": "z"}}},
            [("services", "run", 0), ("services", "addresses", "y")],
        ),
        ({"services": {"tls": {}}}, below(("services", "tls"), "certificate", "key", "ca")),
        ({"limits": {"rate": {}}}, below(("limits", "rate"), "burst", "requestsPerSecond")),
        ({"storages": [{"name": "X"}]}, below(("storages", 0), "name", "prefix", "vendor")),
    ],
)
def test_what_was_broken_is_valid_afterwards(data, paths):
    repair(data, paths)
    Config.model_validate(data)


def test_entries_keep_their_numbers():
    data = {"shares": ["x", {"name": "a"}]}
    repair(data, [("shares", 0)])
    assert Config.model_validate(data).shares[1].name == "a"


def test_stand_ins_differ():
    data = {"recipients": [{"name": "a", "tokens": [{}, {}]}]}
    repair(data, [(*TOKENS, number, "hash") for number in (0, 1)])
    first, second = Config.model_validate(data).recipients[0].tokens
    assert first.hash != second.hash
