"""Where every pool lies on the roofline of its GPU: the FLOP/s and bytes/s that its planned load takes of either peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.physics.types import Device
from planner.plan.schema import Plan, Pool

GIGA = 1e9
TERA = 1e12


@dataclass(frozen=True)
class OperatingPoint:
    """One GPU of a pool at the planned load, averaged over time: what rows of the plan say, by GPU.

    `bytes_per_s` and `flops_per_s` are the load of the rows `bandwidth_ceiling` and `compute_ceiling`, `flop_per_byte` the
    intensity that follows. `peaks` are the datasheet peaks of the GPU in FLOP/s by format, `bandwidth_bytes_per_s` its own.
    """

    pool: str
    gpu: str
    flop_per_byte: float
    flops_per_s: float
    bytes_per_s: float
    peaks: Mapping[str, float]
    bandwidth_bytes_per_s: float

    def roof(self, flop_per_byte: float) -> float:
        """Return the most FLOP/s that the datasheet allows at an intensity, in the fastest format."""
        return min(max(self.peaks.values()), self.bandwidth_bytes_per_s * flop_per_byte)


def operating_points(plan: Plan, devices: Mapping[str, Device]) -> tuple[OperatingPoint, ...]:
    """Return the points of the pools, by name, given their devices. Pools that decode nothing stream nothing and have none."""
    points = (_point(pool, devices[pool.name]) for pool in sorted(plan.pools, key=lambda p: p.name))
    return tuple(point for point in points if point is not None)


def _point(pool: Pool, device: Device) -> OperatingPoint | None:
    used = {row.row: row.used / pool.gpus for row in pool.rows}
    streamed = used.get("bandwidth_ceiling", 0.0) * GIGA
    computed = used.get("compute_ceiling", 0.0) * TERA
    if streamed <= 0.0:
        return None
    return OperatingPoint(
        pool=pool.name,
        gpu=pool.gpu,
        flop_per_byte=computed / streamed,
        flops_per_s=computed,
        bytes_per_s=streamed,
        peaks=device.flops,
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s,
    )
