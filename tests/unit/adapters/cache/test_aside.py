from __future__ import annotations

import threading

import pytest

from gateway.adapters.cache.aside import aside


@pytest.mark.parametrize(("size", "is_aside"), [(0, False), (256 * 1024, False), (256 * 1024 + 1, True)])
async def test_work_on_many_bytes_is_done_in_a_thread(size, is_aside):
    where = await aside(size, threading.current_thread)
    assert (where is not threading.main_thread()) is is_aside
