"""Weights: how the parameters divide into parts, and what the fullest GPU of a replica holds of them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.attention import family_of
from planner.physics.footprint import AttentionParameters, head_share, stage_share
from planner.physics.formats import component_bytes, component_formats
from planner.physics.types import Architecture, Layout


@dataclass(frozen=True, slots=True)
class ParameterSplit:
    """Parameters of one model by part; the first six sum to `total` (PERF_MODEL section 9: P_a, P_f, P_x, P_h).

    `dense` is everything that is none of the others: dense FFN, shared experts, biases, state layers. `head` is
    vocab x d, also when it is tied to the embedding; `embedding` is 0 then. `small` is norms and routers: 16-bit in
    every format and copied on every rank; the speed model may count it as dense.
    """

    attention: float
    dense: float
    experts: float
    head: float
    embedding: float
    small: float
    total: float


def split_parameters(arch: Architecture) -> ParameterSplit:
    """Divide the parameters of `arch` into parts that differ in format, sharding or traffic.

    P_h = vocab x d; P_x = L_m E (3 or 2) d moe_d_ff; P_a from the head shapes; the rest of the total is dense.
    Raises `UnknownArchitecture`.
    """
    raise NotImplementedError


def weights_bytes(arch: Architecture, layout: Layout, fmt: str) -> float:
    """Give the bytes of weights on the fullest GPU of a replica, with copies, scales, padding and the rotary table.

    Raises `UnknownArchitecture` or `UnknownFormat`.
    """
    raise NotImplementedError
