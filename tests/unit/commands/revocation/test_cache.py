from __future__ import annotations

from gateway.commands.revocation.cache import drop_cached
from gateway.config.schema import Config


async def test_without_redis_there_is_nothing_to_drop():
    dropped = await drop_cached(Config(), "acme", ["lake"])
    assert dropped.done is None
    assert "no Redis" in dropped.words


async def test_keys_are_never_made_up(tmp_path):
    config = Config.model_validate(
        {"stateDir": str(tmp_path), "cache": {"redis": {"url": "redis://127.0.0.1:1"}}}
    )

    dropped = await drop_cached(config, "acme", [])

    assert dropped.done is False
    assert "no gateway serves what is there" in dropped.words
    assert list(tmp_path.iterdir()) == []


async def test_process_without_sealing_keys_drops_nothing(tmp_path):
    config = Config.model_validate(
        {
            "stateDir": str(tmp_path),
            "cache": {"redis": {"url": "redis://127.0.0.1:1"}},
            "services": {"run": ["vending"]},
        }
    )

    dropped = await drop_cached(config, "acme", [])

    assert dropped.done is False
    assert "keys" in dropped.words
