"""Where the mean step of every pool lies on the roofline of its GPU: FLOPs, bytes and what is reached of either peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.types import CandidateTable
from planner.physics.constants import SpeedConstants
from planner.physics.latency import throughput
from planner.physics.speed import step_bytes, step_flops
from planner.plan.assess import PoolLoad, load_pools, mean_step


@dataclass(frozen=True)
class OperatingPoint:
    """One GPU of a pool in the mean step at the planned load, prompts included.

    `flop_per_byte` is the intensity of the step; `flops_per_s` and `bytes_per_s` are what the step reaches, predicted
    with the confidence factor. `peaks` are the datasheet peaks of the GPU in FLOP/s by format, `bandwidth` its own.
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


def operating_points(
    table: CandidateTable, loads: Sequence[PoolLoad], constants: SpeedConstants
) -> tuple[OperatingPoint, ...]:
    """Return the point of every pool, by name.

    A step of a pipeline passes all stages while `streams` of them are under way, so that one GPU does its share of that.
    """
    found: list[OperatingPoint] = []
    for model in sorted({load.shape.model for load in loads}):
        own = [load for load in loads if load.shape.model == model]
        at = load_pools(table.models[model], table.workloads, own, constants)
        tokens, sequences, context, prefill, length = mean_step(at.pairs, at.mixes, at.batch)
        flops = np.asarray(step_flops(at.pairs.step, tokens, sequences, context, prefill, length))
        streamed = np.asarray(step_bytes(at.pairs.step, tokens, sequences, context))
        stages = np.array([float(load.shape.layout.pipeline) for load in own])
        seconds = throughput(at.pairs, at.batch).mean_step_s * stages / np.asarray(at.pairs.step.streams)
        for i, load in enumerate(own):
            device = load.shape.device
            found.append(
                OperatingPoint(
                    pool=load.name,
                    gpu=load.shape.gpu,
                    flop_per_byte=float(flops[i] / streamed[i]),
                    flops_per_s=float(flops[i] / seconds[i]),
                    bytes_per_s=float(streamed[i] / seconds[i]),
                    peaks=device.flops,
                    bandwidth_bytes_per_s=device.bandwidth_bytes_per_s,
                )
            )
    return tuple(sorted(found, key=lambda point: point.pool))
