"""The engine's real parts of a memory budget, to put beside a rule of thumb."""

from __future__ import annotations

from planner.catalog.engine import EngineProfile
from planner.physics.budget import NOTHING_EXTRA, Extras
from planner.physics.memory import HbmBudget, hbm_budget, weights_bytes
from planner.physics.types import Layout
from planner.sizing.inputs import Gpu, Subject


def engine_budget(
    engine: EngineProfile | None,
    subject: Subject,
    gpu: Gpu,
    weights: str,
    kv: str,
    tensor: int,
    context: int,
    weights_memory: float | None = None,
) -> HbmBudget | None:
    """Return the budget of one GPU at the engine's defaults for sequences of `context` tokens.

    `weights_memory` states the bytes of weights on that GPU instead of those that the engine would store.
    None without an engine that runs on the GPU, or where model or GPU are no catalog entries. Raises
    `UnknownArchitecture`.
    """
    device = gpu.device
    if engine is None or device is None or not subject.is_whole or not engine.supports(device.vendor):
        return None
    layout = Layout(tensor=tensor)
    return hbm_budget(
        subject.arch,
        device,
        layout,
        weights,
        kv,
        engine.memory,
        engine.memory.max_num_seqs_on(device),
        engine.max_num_batched_tokens,
        context,
        extras=_beyond_stored(engine, subject, layout, weights, weights_memory),
    )


def _beyond_stored(
    engine: EngineProfile, subject: Subject, layout: Layout, weights: str, weights_memory: float | None
) -> Extras:
    """Return what stated weights hold beyond those that the engine would store; less than zero where they are smaller."""
    if weights_memory is None:
        return NOTHING_EXTRA
    return Extras(weights_memory - weights_bytes(subject.arch, layout, weights, engine.memory.mla_absorbed))


def engine_label(engine: EngineProfile | None, budget: HbmBudget | None) -> str | None:
    """Return name and version of the engine that a budget is of."""
    return f"{engine.name} {engine.version}" if engine is not None and budget is not None else None
