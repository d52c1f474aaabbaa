"""Redis with TLS, with a user that has few rights, and on a socket."""

from __future__ import annotations

import re

import pytest

from gateway.config.redis import RedisConfig
from tests.certificates import new_authority
from tests.components import REDIS
from tests.integration.replica import PATIENT, Provider, dropping, replica
from tests.repository import ROOT
from tests.stores.redis import (
    PROGRAMS,
    redis_program,
    running_cluster,
    running_server,
    running_tls_server,
)
from tests.waiting import eventually_async


def rules() -> list[str]:
    """Return the rules of the user as the documentation gives them."""
    text = (ROOT / "docs" / "cache.md").read_text(encoding="utf-8")
    found = re.search(r"^    ACL SETUSER sluice (.+)$", text, re.MULTILINE)
    assert found is not None
    return found.group(1).replace("PASSWORD", "hunter2").split()


async def shared(provider: Provider, **redis) -> None:
    """Two replicas find each other's values, and a drop removes them."""
    async with replica(provider, **redis) as one, replica(provider, **redis) as two:
        assert await one.issue() == await two.issue()
        assert two.served("redis") == 1
        config = RedisConfig.model_validate({"timeout": PATIENT, **redis})
        async with dropping(config) as drops:
            assert await drops.drop_recipient("ann") == 1
        for reason in ("authentication", "response", "cluster", "connection"):
            assert one.errors(reason) == two.errors(reason) == 0


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_user_with_the_documented_rights_and_no_others(program, tmp_path):
    with running_server(program(), tmp_path) as server:
        server.client().execute_command("ACL", "SETUSER", "sluice", *rules())
        await shared(Provider(), url=server.url, username="sluice", password="hunter2")
        denied = server.client().execute_command("ACL", "LOG")
    assert denied == []


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_user_of_a_cluster(program, tmp_path):
    with running_cluster(program(), tmp_path) as nodes:
        for node in nodes:
            node.client().execute_command("ACL", "SETUSER", "sluice", *rules())
        await shared(Provider(), url=nodes[0].url, cluster=True, username="sluice", password="hunter2")
        denied = [node.client().execute_command("ACL", "LOG") for node in nodes]
    assert denied == [[], [], []]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("password", ["wrong", None])
async def test_a_wrong_or_missing_password_is_a_miss(program, tmp_path, caplog, password):
    provider = Provider()
    with running_server(program(), tmp_path, "--requirepass", "hunter2") as server:
        async with replica(provider, is_up=False, url=server.url, password=password) as one:
            await one.issue()
            await eventually_async(lambda: one.errors("authentication") >= 1)
            assert not one.is_up
    assert len(provider.calls) == 1
    assert caplog.text.count("redis is out of order (authentication)") == 1
    assert "hunter2" not in caplog.text
    assert "wrong" not in caplog.text


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_user_who_may_not_write_is_a_miss(program, tmp_path):
    provider = Provider()
    with running_server(program(), tmp_path) as server:
        server.client().execute_command("ACL", "SETUSER", "reader", "on", ">p", "~*", "+get", "+eval")
        async with replica(provider, is_up=False, url=server.url, username="reader", password="p") as one:
            await one.issue()
            await eventually_async(lambda: one.errors("authentication") >= 1)
            assert not one.is_up
    assert len(provider.calls) == 1


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_socket(program, tmp_path):
    socket = tmp_path / "redis.sock"
    with running_server(program(), tmp_path, "--unixsocket", str(socket)):
        await shared(Provider(), url=f"unix://{socket}")


@pytest.mark.component(REDIS)
@pytest.mark.system
async def test_tls_with_an_authority_and_a_certificate_of_our_own(tmp_path):
    authority = new_authority(tmp_path)
    with running_tls_server(redis_program(), tmp_path, authority.issue("redis")) as server:
        files = authority.issue("vending")
        url = f"rediss://127.0.0.1:{server.port}"
        await shared(Provider(), url=url, tls=files.model_dump())


@pytest.mark.component(REDIS)
@pytest.mark.system
@pytest.mark.parametrize("who", ["other", "system"])
async def test_a_server_whose_authority_we_do_not_know_is_not_trusted(tmp_path, who):
    authority, other = new_authority(tmp_path / "ours"), new_authority(tmp_path / "others")
    provider = Provider()
    with running_tls_server(redis_program(), tmp_path, authority.issue("redis")) as server:
        files = authority.issue("vending").model_dump()
        tls = files | {"ca": str(other.ca) if who == "other" else ""}
        url = f"rediss://127.0.0.1:{server.port}"
        async with replica(provider, is_up=False, url=url, tls=tls) as one:
            await one.issue()
            await eventually_async(lambda: one.errors("connection") >= 1)
            assert not one.is_up
    assert len(provider.calls) == 1
