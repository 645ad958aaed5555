"""The shipped catalog, and a small one that tests may break."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.catalog import Catalog

INDEX = 'catalog: 1\nnewest_price_date: "2026-07-30"\nstale_after_days: 180\nnot_modelled: []\n'


@pytest.fixture(scope="session")
def shipped() -> Catalog:
    """The catalog of this repository, read once."""
    return Catalog.open()


@pytest.fixture
def scratch(tmp_path: Path, shipped: Catalog) -> Path:
    """A copy of the shipped catalog with one GPU, one model, one engine and one provider."""
    root = tmp_path / "catalog"
    kept = (
        "aliases.yaml", "labels.yaml", "gpus/H100-SXM-80GB.yaml", "models/openai/gpt-oss-20b.yaml", "engines/vllm.yaml",
        "offers/commitments.yaml", "quality/kv.yaml", "quality/weights.yaml",
    )  # fmt: skip
    for name in kept:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((shipped.root / name).read_bytes())
    (root / "catalog.yaml").write_text(INDEX)
    (root / "offers/regions.yaml").write_text("acme:\n  moon-1: US\n")
    (root / "offers/acme.yaml").write_text(
        "provider: acme\n"
        'price_lists: {main: {date: "2026-07-30", basis: listed, source: a list}}\n'
        "instances:\n"
        "  - {instance: h8, gpu: H100-SXM-80GB, gpus: 8, prices: {main: {moon-1: [20, ~, 12]}}}\n"
    )
    return root
