"""Settings of every test."""

from __future__ import annotations

from hypothesis import settings

# examples are not timed: a busy machine must not fail a test
settings.register_profile("cnncli", deadline=None)
settings.load_profile("cnncli")
