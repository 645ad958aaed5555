"""The engine's real parts of a memory budget, to put beside a rule of thumb."""

from __future__ import annotations

from planner.catalog.engine import EngineProfile
from planner.physics.memory import HbmBudget, hbm_budget
from planner.physics.types import Layout
from planner.sizing.inputs import Gpu, Subject


def engine_budget(
    engine: EngineProfile | None, subject: Subject, gpu: Gpu, weights: str, kv: str, tensor: int, context: int
) -> HbmBudget | None:
    """Return the budget of one GPU at the engine's defaults for sequences of `context` tokens.

    None without an engine that runs on the GPU, or where model or GPU are no catalog entries. Raises
    `UnknownArchitecture`.
    """
    device = gpu.device
    if engine is None or device is None or not subject.is_whole or not engine.supports(device.vendor):
        return None
    return hbm_budget(
        subject.arch,
        device,
        Layout(tensor=tensor),
        weights,
        kv,
        engine.memory,
        engine.memory.max_num_seqs_on(device),
        engine.max_num_batched_tokens,
        context,
    )


def engine_label(engine: EngineProfile | None, budget: HbmBudget | None) -> str | None:
    """Return name and version of the engine that a budget is of."""
    return f"{engine.name} {engine.version}" if engine is not None and budget is not None else None
