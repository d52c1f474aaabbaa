from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import RedisCluster
from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection

from gateway.adapters.cache.redis_client import redis_client
from gateway.config.redis import RedisConfig


def config(**settings: Any) -> RedisConfig:
    return RedisConfig.model_validate(settings)


async def arguments(**settings: Any) -> dict[str, Any]:
    async with redis_client(config(**settings)) as client:
        return dict(client.connection_pool.connection_kwargs)


async def test_host_port_and_database_come_from_the_url():
    found = await arguments(url="redis://cache.example:7000/3")
    assert (found["host"], found["port"], found["db"]) == ("cache.example", 7000, 3)
    found = await arguments(url="redis://[::1]")
    assert (found["host"], found["port"], found["db"]) == ("::1", 6379, 0)


async def test_a_socket_comes_from_the_url():
    async with redis_client(config(url="unix:///run/redis%20a.sock")) as client:
        assert client.connection_pool.connection_class is UnixDomainSocketConnection
        assert client.connection_pool.connection_kwargs["path"] == "/run/redis a.sock"


async def test_time_outs_are_ours_and_nothing_is_tried_twice():
    found = await arguments(url="redis://localhost", timeout="250ms")
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == (0.25, 0.25)
    assert found["retry"].get_retries() == 0


async def test_user_and_password_are_passed_on_and_not_shown():
    found = await arguments(url="redis://localhost", username="sluice", password="hunter2")
    assert (found["username"], found["password"]) == ("sluice", "hunter2")
    assert "hunter2" not in repr(config(url="redis://localhost", password="hunter2"))


async def test_tls_verifies_the_server_and_its_name():
    async with redis_client(config(url="rediss://localhost", tls={"ca": "/ca.pem"})) as client:
        assert client.connection_pool.connection_class is SSLConnection
        found = client.connection_pool.connection_kwargs
    assert found["ssl_ca_certs"] == "/ca.pem"
    assert found["ssl_cert_reqs"] == "required"
    assert found["ssl_check_hostname"] is True


async def test_a_cluster_is_one():
    async with redis_client(config(url="redis://cache.example", cluster=True)) as client:
        assert isinstance(client, RedisCluster)


@pytest.mark.parametrize("cluster", [False, True])
async def test_a_client_that_cannot_be_closed_is_no_error(cluster):
    async def fail() -> None:
        raise ValueError("answers are out of step")

    async with redis_client(config(url="redis://cache.example", cluster=cluster)) as client:
        client.aclose = fail


@pytest.mark.parametrize("tls", [None, {"ca": "/ca.pem"}])
async def test_sentinels_have_a_user_of_their_own(tls):
    sentinel = {"addresses": ["a:1", "b:2"], "service": "lake", "username": "s", "password": "sentinel"}
    settings = config(sentinel=sentinel, username="u", password="primary", tls=tls)
    async with redis_client(settings) as client:
        pool = client.connection_pool
        assert pool.service_name == "lake"
        assert pool.connection_kwargs["password"] == "primary"
        sentinels = [each.connection_pool.connection_kwargs for each in pool.sentinel_manager.sentinels]
    assert [(each["host"], each["port"]) for each in sentinels] == [("a", 1), ("b", 2)]
    assert {each["password"] for each in sentinels} == {"sentinel"}
    assert all(("ssl_ca_certs" in each) is (tls is not None) for each in sentinels)
