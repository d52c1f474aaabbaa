from __future__ import annotations

from datetime import timedelta

import pytest

from tests.cases import each_case


@each_case(
    "redis",
    [
        "{url: 'redis://localhost:6379/0'}",
        "{url: 'redis://127.0.0.1'}",
        "{url: 'redis://[::1]:6379'}",
        "{url: 'rediss://cache.example:6379'}",
        "{url: 'unix:///run/redis.sock', username: sluice, password: secret}",
        "{url: 'rediss://cache.example', cluster: true}",
        "{sentinel: {addresses: ['a:26379', 'b:26379'], service: lake}}",
        "{url: 'redis://localhost', timeout: 50ms, leaseTime: 10s, keyPrefix: 'team-a/sluice:'}",
    ],
)
def test_ways_to_redis(faults_of, redis):
    assert faults_of(f"cache: {{redis: {redis}}}") == {}


@each_case(
    ("redis", "path", "words"),
    [
        ("{timeout: 1s}", "", "needs either url or sentinel"),
        ("{url: 'redis://a', sentinel: {addresses: ['a:1'], service: s}}", "", "needs either"),
        ("{url: 'http://localhost'}", ".url", "must be redis://"),
        ("{url: 'localhost:6379'}", ".url", "must be redis://"),
        ("{url: 'redis://'}", ".url", "must be redis://"),
        ("{url: 'redis://localhost:99999'}", ".url", "must be redis://"),
        ("{url: 'redis://localhost/zero'}", ".url", "must be redis://"),
        ("{url: 'redis://localhost?db=1'}", ".url", "must be redis://"),
        ("{url: 'unix://socket'}", ".url", "must be redis://"),
        ("{url: 'redis://:hunter2@localhost'}", ".url", "set cache.redis.username"),
        ("{url: 'redis://localhost/1', cluster: true}", ".url", "no database"),
        ("{url: 'unix:///redis.sock', cluster: true}", ".url", "must name a host"),
        ("{url: 'redis://localhost', tls: {}}", ".tls", "needs a rediss:// URL"),
        ("{url: 'rediss://localhost', tls: {ca: /nonexistent}}", ".tls.ca", "cannot be read"),
        ("{url: 'rediss://localhost', tls: {key: /dev/null}}", ".tls", "needs both"),
        ("{sentinel: {addresses: [], service: s}}", ".sentinel.addresses", "at least one"),
        ("{sentinel: {addresses: [a], service: s}}", ".sentinel.addresses[0]", "must be host:port"),
        ("{sentinel: {addresses: ['a:1'], service: s}, cluster: true}", ".cluster", "give the url"),
        ("{url: 'redis://localhost', username: sluice}", ".username", "needs a password"),
        ("{url: 'redis://localhost', keyPrefix: 'a{b}'}", ".keyPrefix", "letters, digits"),
        ("{url: 'redis://localhost', timeout: 6s}", ".timeout", "at most 5s"),
        ("{url: 'redis://localhost', leaseTime: 500ms}", ".leaseTime", "from 1s to 1m"),
        ("{url: 'redis://localhost', leaseTime: 2m}", ".leaseTime", "from 1s to 1m"),
    ],
)
def test_faults(faults_of, redis, path, words):
    faults = faults_of(f"cache: {{redis: {redis}}}")
    assert [*faults] == [f"cache.redis{path}"]
    assert words in str(faults[f"cache.redis{path}"])
    assert "hunter2" not in str(faults)


@pytest.mark.parametrize(("host", "warned"), [("cache.example", True), ("localhost", False)])
def test_a_password_that_could_be_read_on_the_way_is_warned_of(read_text, host, warned):
    draft = read_text(f"allowAnonymous: true\ncache: {{redis: {{url: 'redis://{host}'}}}}")
    assert any("has no TLS" in warning for warning in draft.warnings) is warned


@pytest.mark.parametrize(("tls", "warned"), [("", True), (", tls: {}", False)])
def test_sentinels_without_tls_are_warned_of(read_text, tls, warned):
    sentinel = "sentinel: {addresses: ['a:1', 'b:1', '127.0.0.1:1'], service: lake}"
    draft = read_text(f"allowAnonymous: true\ncache: {{redis: {{{sentinel}{tls}}}}}")
    assert sum("has no TLS" in warning for warning in draft.warnings) == warned


def test_passwords_come_from_files(read_text, tmp_path):
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    env = {"SLUICE_CACHE_REDIS_URL": "rediss://a", "SLUICE_CACHE_REDIS_PASSWORD_FILE": str(file)}
    config = read_text("allowAnonymous: true", env).config
    assert config.cache.redis.password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("urls", "memory", "in_redis"),
    [
        ("{}", 128 * 1024 * 1024, "auto"),
        ("{memory: 0}", 0, "auto"),
        ("{memory: 1GiB, redis: never}", 1024**3, "never"),
    ],
)
def test_signatures_have_memory_of_their_own(read_text, urls, memory, in_redis):
    config = read_text(f"allowAnonymous: true\ncache: {{urls: {urls}}}").config
    assert (config.cache.urls.memory, config.cache.urls.redis) == (memory, in_redis)


@pytest.mark.parametrize(
    ("urls", "path", "words"),
    [
        ("{redis: sometimes}", ".redis", "auto"),
        ("{memory: -1}", ".memory", "must be 0, or a size"),
        ("{memory: lots}", ".memory", "must be 0, or a size"),
    ],
)
def test_faults_of_urls(faults_of, urls, path, words):
    faults = faults_of(f"cache: {{urls: {urls}}}")
    assert [*faults] == [f"cache.urls{path}"]
    assert words in str(faults[f"cache.urls{path}"])


@pytest.mark.parametrize(("redis", "warned"), [("", True), (", redis: {url: 'redis://localhost'}", False)])
def test_signatures_that_are_to_be_shared_through_no_redis_are_warned_of(read_text, redis, warned):
    draft = read_text(f"allowAnonymous: true\ncache: {{urls: {{redis: always}}{redis}}}")
    assert any("there is no cache.redis" in warning for warning in draft.warnings) is warned


def test_what_is_kept_of_urls_comes_from_the_environment_too(read_text):
    env = {"SLUICE_CACHE_URLS_MEMORY": "0", "SLUICE_CACHE_URLS_REDIS": "never"}
    urls = read_text("allowAnonymous: true", env).config.cache.urls
    assert (urls.memory, urls.redis) == (0, "never")


def test_defaults(read_text):
    config = read_text("allowAnonymous: true\ncache: {redis: {url: 'redis://localhost'}}").config
    assert config.cache.memory == 64 * 1024 * 1024
    redis = config.cache.redis
    assert (redis.timeout, redis.lease_time) == (timedelta(milliseconds=100), timedelta(seconds=5))
    assert redis.key_prefix == "sluice:"
    assert read_text("allowAnonymous: true").config.cache.redis is None
