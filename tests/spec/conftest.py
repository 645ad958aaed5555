"""Shared specs."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def prod_text() -> str:
    """The text of the production example."""
    return (ROOT / "specs" / "prod.yaml").read_text(encoding="utf-8")
