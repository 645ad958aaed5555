"""What is known about speed: constants, what was measured, and the margin that the chosen confidence asks for."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog import Catalog
from planner.physics.bands import OWN, Bands, Coverage, OwnRows, Provenance, factor, family_kind, provenance_of
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
        """Read the catalog's calibration. Raises `DiagnosticError` naming what is missing in it."""
        data = catalog.calibration()
        return cls(SpeedConstants.from_mapping(data), Coverage.from_mapping(data), Bands.from_mapping(data), confidence)

    def provenance(self, architecture: Architecture, device: Device, engine_class: str, weights: str) -> Provenance:
        """Return what stands behind predictions for a model on a device."""
        generation = self.constants.engine(engine_class).generation
        combination = (engine_class, device.name, family_kind(architecture), weights)
        return provenance_of(self.coverage, combination, device.architecture_class, generation)

    def own_rows(self, architecture: Architecture, device: Device, engine_class: str, weights: str) -> OwnRows | None:
        """Return the user's own measurements that decide predictions for a model on a device, None without any."""
        return self.coverage.own_rows((engine_class, device.name, family_kind(architecture), weights))

    def factor(self, provenance: Provenance, metric: str) -> float:
        """Return the factor on predicted times that the confidence asks for; `metric` is throughput or ttft."""
        return factor(self.bands, provenance.line, metric, self.confidence)

    def measured_factor(self) -> float:
        """Return the factor on step times that the confidence would ask for had the user measured the combination."""
        return factor(self.bands, OWN, "throughput", self.confidence)
