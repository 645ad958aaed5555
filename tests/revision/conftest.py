"""A small repository: a spec, a catalog of two files, a folder beside."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository

INDEX = 'catalog: 1\nnewest_price_date: "2026-07-30"\nstale_after_days: 180\n'


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit on `main`; its work tree is the working folder."""
    made = Repository.made(tmp_path / "work")
    made.write("specs/prod.yaml", "version: 1\nfleet: prod\n")
    made.write("catalog/catalog.yaml", INDEX)
    made.write("catalog/models/org/small.yaml", "name: org/small\n")
    made.commit()
    monkeypatch.chdir(made.folder)
    return made
