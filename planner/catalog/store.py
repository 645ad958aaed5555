"""The catalog: lazy loading of its files, name lookup, digest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from planner.catalog.commitment import Ratio
from planner.catalog.engine import EngineProfile
from planner.catalog.gpu import GpuEntry, NotModelled
from planner.catalog.model import ModelEntry
from planner.catalog.offer import CatalogOffer
from planner.catalog.quality import QualityEvidence
from planner.physics.types import Architecture

INDEX_FILE = "catalog.yaml"


def find_catalog(start: Path) -> Path | None:
    """Return the nearest `catalog/` at or above `start` that holds a `catalog.yaml`, or None."""
    for folder in (start, *start.parents):
        if (folder / "catalog" / INDEX_FILE).is_file():
            return folder / "catalog"
    return None


class Catalog:
    """A folder of YAML files, read only as far as asked. Every file error is raised as a `DiagnosticError`."""

    @classmethod
    def open(cls, path: Path | None = None) -> Catalog:
        """Open the catalog at `path`, or the one shipped with the package. Raises `DiagnosticError`."""
        raise NotImplementedError

    root: Path

    def gpu_names(self) -> tuple[str, ...]:
        """Return the names of all GPUs, sorted."""
        raise NotImplementedError

    def gpu(self, name: str) -> GpuEntry:
        """Return a GPU by name or alias, ignoring case. Raises `UnknownName`."""
        raise NotImplementedError

    def not_modelled(self) -> tuple[NotModelled, ...]:
        """Return the accelerators left out, with reasons."""
        raise NotImplementedError

    def model_names(self) -> tuple[str, ...]:
        """Return the names of all models, sorted."""
        raise NotImplementedError

    def model(self, name: str) -> ModelEntry:
        """Return a model by name or alias, ignoring case. Raises `UnknownName`."""
        raise NotImplementedError

    def providers(self) -> tuple[str, ...]:
        """Return the providers with priced offers, sorted."""
        raise NotImplementedError

    def offers(self, provider: str) -> tuple[CatalogOffer, ...]:
        """Return a provider's offers of modelled GPUs, sorted by instance, GPU and region. Raises `UnknownName`."""
        raise NotImplementedError

    def commitment_ratio(self, provider: str, instance: str, term: str, upfront: str | None = None) -> Ratio | None:
        """Return the price ratio of a term for an instance type, most specific first, or None."""
        raise NotImplementedError

    def quality(
        self, model: Architecture, weights: str | None, kv: str | None, evidence: str = "any"
    ) -> QualityEvidence | None:
        """Return what a weight format and a KV format keep of the native quality, or None without evidence."""
        raise NotImplementedError

    def engine_names(self) -> tuple[str, ...]:
        """Return the names of all engines, sorted."""
        raise NotImplementedError

    def engine(self, name: str, version: str | None = None) -> EngineProfile:
        """Return an engine's profile at a version (None: newest known). Raises `UnknownName`."""
        raise NotImplementedError

    def calibration(self, name: str = "default") -> Mapping[str, Any]:
        """Return the raw data of `calibration/<name>.yaml`. Raises `UnknownName`."""
        raise NotImplementedError

    def digest(self) -> str:
        """Return `sha256:...` over the paths and bytes of all catalog files, sorted."""
        raise NotImplementedError

    def newest_price_date(self) -> date:
        """Return the newest exact price date of any offer, as recorded in `catalog.yaml`."""
        raise NotImplementedError
