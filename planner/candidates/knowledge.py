"""What is known about speed: constants, what was measured, and the margin that the chosen confidence asks for."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog import Catalog
from planner.physics.bands import Bands, Coverage, factor, family_kind, provenance_class
from planner.physics.constants import SpeedConstants
from planner.physics.types import Architecture, Device


@dataclass(frozen=True)
class Knowledge:
    """The calibration with the confidence that a spec plans on (0 to 1, one-sided)."""

    constants: SpeedConstants
    coverage: Coverage
    bands: Bands
    confidence: float

    @classmethod
    def of(cls, catalog: Catalog, confidence: float) -> Knowledge:
        """Read the catalog's calibration. Raises `ValueError` naming what is missing in it."""
        data = catalog.calibration()
        return cls(SpeedConstants.from_mapping(data), Coverage.from_mapping(data), Bands.from_mapping(data), confidence)

    def provenance(self, architecture: Architecture, device: Device, generation: str) -> str:
        """Return the provenance class, A to D, of predictions for a model on a device."""
        kind = family_kind(architecture)
        return provenance_class(self.coverage, device.name, device.architecture_class, generation, kind)

    def factor(self, provenance: str, metric: str) -> float:
        """Return the factor on predicted times that the confidence asks for; `metric` is throughput or ttft."""
        return factor(self.bands, provenance, metric, self.confidence)
