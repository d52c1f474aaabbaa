"""What a window promises of the URLs that are handed out in it."""

from __future__ import annotations

from datetime import timedelta

from gateway.adapters.cache.rhythm import STALE_LEAST
from gateway.domain.window import LEAST_LEFT, Window


def least_left(window: Window) -> timedelta:
    """Return how much of its life a URL has left at least: as much as the last one of the window."""
    return window.expires_at - window.end


def least_wanted(window: Window) -> timedelta:
    """Return how much must be left of what is signed with, where its provider gives as much."""
    return min(LEAST_LEFT, least_left(window))


def least_in_need(window: Window) -> timedelta:
    """Return how much must be left of what is used when nothing better can be had."""
    return min(STALE_LEAST, least_left(window))


def before(window: Window) -> Window:
    width = window.end - window.start
    return Window(start=window.start - width, end=window.start, expires_at=window.expires_at - width)
