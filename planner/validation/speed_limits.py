"""What no measurement of speed can be: faster than the datasheet, or of weights that the stated GPUs cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.physics.format_labels import WIDE_LABELS
from planner.physics.memory import weights_bytes
from planner.physics.speed import ATTENTION_FLOPS, FLOPS_PER_PARAMETER, score_width
from planner.physics.types import Layout
from planner.validation.cells import NotScored, Row
from planner.validation.impossible import check_weights
from planner.validation.speed_formats import stated_bits
from planner.validation.speed_layouts import stated_gpus
from planner.validation.speed_targets import RATES

if TYPE_CHECKING:
    from planner.validation.speed_rows import SpeedRow

LEAST_COMPUTED = 0.1
"""Share of a prompt that is computed at least: the rest may come from a prefix cache."""
TOO_FAST = 2.0
"""Real rows reach 1.5 times the datasheet's limit: embeddings are not streamed, and unstated layouts are guessed."""
STATED_SEQUENCES = ("closed_loop", "static_batch", "burst_all_at_once")
"""Scenarios whose `load` bounds the sequences in flight."""
OFFLOADS = frozenset({"llamacpp"})
"""Engine classes that compute the layers that a GPU cannot hold on the CPU."""


def check_fits(row: SpeedRow, stated: Row, devices: int) -> None:
    """Refuse weights that the stated GPUs cannot hold; where neither layout nor GPUs are stated nothing is known.

    A table that states GPUs and no layout may have split the model over all of them. Where other GPUs compute prompts,
    their ranks of attention are stated and not how many of them share the experts, so that the others tell.
    """
    if row.engine.name in OFFLOADS:
        return
    is_stated = bool(stated.get("tp") or stated.get("parallel_extra"))
    gpus = row.layout.gpus if is_stated else stated_gpus(stated) * devices
    bits = stated_bits(stated.get("weight_dtype", ""))
    least = row.arch.n_params_total * bits / 8 if bits else weights_bytes(row.arch, Layout(), row.weights)
    if gpus:
        check_weights(row.arch, least, row.weights, gpus, row.device.name, row.device.usable_bytes)


def check_speed(row: SpeedRow) -> None:
    """Refuse what no machine can do, by the datasheet: reading the weights once a step, and two operations per weight and token.

    A step gives every sequence in flight one token at most, so that a throughput is bounded by both. A throughput of outputs
    is one of prompts as well, but for static batches, whose decoding alone some tables print.
    """
    gpus = row.layout.gpus
    active = row.arch.n_params_active
    read_s = (
        weights_bytes(row.arch, Layout(), row.weights)
        * active
        / row.arch.n_params_total
        / (row.device.bandwidth_bytes_per_s * gpus)
    )
    token_s = 2.0 * active / (max(row.device.flops.values()) * gpus)
    statistic = row.target.statistic
    least_s = {"decode": read_s, "prompt": token_s * row.prompt_tokens, "prompt_rate": token_s}.get(statistic)
    if statistic.startswith("tpot"):
        least_s = read_s
    elif statistic in ("rate", "static_rate"):
        least_s = token_s / row.replicas
        if statistic == "rate" and row.prefill_layout is None:
            least_s += _prompt_s(row) / row.output_tokens
        if row.scenario in STATED_SEQUENCES:
            least_s = max(least_s, read_s / row.load)
    elif statistic.startswith("ttft") and row.prefill_layout is None:
        least_s = token_s * row.prompt_tokens * LEAST_COMPUTED
    if least_s is not None and _seconds(row) * TOO_FAST < least_s:
        raise NotScored("impossible: faster than the datasheet bandwidth or FLOP/s allow", scorable=False)


def _prompt_s(row: SpeedRow) -> float:
    """Return the least time that all GPUs take for one prompt of which a prefix cache holds all but the last part.

    Weights of 16 bits are computed at 16 bits; attention may be narrower, and local layers are not counted. The last tokens
    of a prompt attend to the part that is cached too.
    """
    arch, tokens = row.arch, row.prompt_tokens * LEAST_COMPUTED
    fastest = max(row.device.flops.values())
    weights_rate = row.device.flops["bf16"] if row.weights in WIDE_LABELS else fastest
    layers = arch.n_attention_layers - arch.n_local_layers - arch.n_cross_layers
    context = row.prompt_tokens * (1.0 - LEAST_COMPUTED / 2.0)
    attention = ATTENTION_FLOPS * score_width(arch) * max(layers, 0) * context
    each_s = FLOPS_PER_PARAMETER * arch.n_params_active / weights_rate + attention / fastest
    return tokens * each_s / (row.layout.gpus * row.replicas)


def _seconds(row: SpeedRow) -> float:
    return 1.0 / row.value if row.target.statistic in RATES else row.value
