"""The command line, for what training and it do together."""

from __future__ import annotations

from tests.cli.conftest import cnncli, workspace

__all__ = ["cnncli", "workspace"]
