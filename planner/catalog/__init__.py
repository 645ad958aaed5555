"""Facts with sources: GPUs, models, offers, quality, engines. Read lazily from a folder of YAML files."""

from __future__ import annotations

from planner.catalog.changes import CatalogChanges
from planner.catalog.commitment import Ratio
from planner.catalog.engine import EngineProfile
from planner.catalog.gpu import GpuEntry
from planner.catalog.index import NotModelled
from planner.catalog.labels import Label
from planner.catalog.model import ModelEntry
from planner.catalog.names import UnknownName
from planner.catalog.offer import TERMS, CatalogOffer
from planner.catalog.quality import QualityEvidence
from planner.catalog.store import Catalog, find_catalog

__all__ = [
    "TERMS",
    "Catalog",
    "CatalogChanges",
    "CatalogOffer",
    "EngineProfile",
    "GpuEntry",
    "Label",
    "ModelEntry",
    "NotModelled",
    "QualityEvidence",
    "Ratio",
    "UnknownName",
    "find_catalog",
]
