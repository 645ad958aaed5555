"""What no deployment can be: layouts that an engine refuses, weights or sequences that do not fit. For all measurements.

Only what is beyond doubt is refused: the least that the weights take, and the most that the stated GPUs hold.
"""

from __future__ import annotations

from planner.physics.types import Architecture, Layout
from planner.validation.cells import NotScored

SPLITS_UNEVENLY = frozenset({"llama.cpp", "llamacpp", "exllama", "ds_mii", "ds_hpu"})
"""Engines, and engine classes of the speed model, that split heads in any proportion, or no heads at all."""
GIB = 2.0**30


def check_layout(arch: Architecture, layout: Layout, engine: str) -> None:
    """Raise `NotScored` for a layout that no engine starts: heads that do not divide, stages without a layer."""
    if layout.pipeline > arch.n_layers:
        raise NotScored(
            f"impossible: pp {layout.pipeline} is more than the {arch.n_layers} layers of {arch.name}", scorable=True
        )
    if arch.n_heads and arch.n_heads % layout.tensor and engine not in SPLITS_UNEVENLY:
        raise NotScored(
            f"impossible: tp {layout.tensor} does not divide the {arch.n_heads} heads of {arch.name}", scorable=True
        )


def check_weights(arch: Architecture, least_bytes: float, weights: str, gpus: int, gpu: str, gpu_bytes: float) -> None:
    """Raise `NotScored` where `gpus` cards cannot hold weights that take `least_bytes` over all of them."""
    if least_bytes > gpus * gpu_bytes:
        raise NotScored(
            f"impossible: {arch.name} in {weights} takes {least_bytes / GIB:,.0f} GiB of weights,"
            f" {gpus} x {gpu} hold {gpus * gpu_bytes / GIB:,.0f} GiB",
            scorable=False,
        )


def check_length(arch: Architecture, tokens: float, what: str) -> None:
    """Raise `NotScored` for a sequence that is longer than the positions of a model."""
    if tokens > arch.max_position:
        raise NotScored(
            f"impossible: {what} of {tokens:,.0f} tokens, {arch.name} takes {arch.max_position:,} at most",
            scorable=False,
        )
