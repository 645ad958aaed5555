"""Textbook figures of serving: widths, bytes a step reads, decode ceiling, roofline. Pure functions of floats, no numpy.

They state bounds and rules of thumb; the calibrated model of a step is `planner.physics.speed`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from planner.physics.formats import KvFormat, WeightFormat

FLOPS_PER_PARAMETER = 2.0
"""One multiply-add per parameter and token (Kaplan et al., arXiv 2001.08361, section 2.1)."""
MATRIX_PRODUCTS_OF_ATTENTION = 2.0
"""Scores and weighted values: two products per query head and cached token."""
EXPECTED_BANDWIDTH_SHARES = (0.70, 0.85)
"""Shares of the datasheet bandwidth that a decode step of a good engine reaches, low and high."""
BALANCED_WITHIN = 0.10
"""A step this close to the ridge is called balanced."""
WORKSPACE_SHARE = 0.10
"""Rule of thumb: activations, context and graphs take a tenth of the memory."""
PAGE_TOKENS = 16
"""Tokens per block of PagedAttention (Kwon et al., arXiv 2309.06180)."""
BITS_PER_BYTE = 8.0
BISECTIONS = 60
"""Halvings of an interval: to the last digits of a float."""


class Regime(StrEnum):
    """Side of the ridge of the roofline that a step lies on."""

    MEMORY = "memory-bound"
    BALANCED = "balanced"
    COMPUTE = "compute-bound"


def nominal_weight_bytes(weights: WeightFormat) -> float:
    """Return bytes per parameter by the width in the format's name, without scales: int4 is 0.5.

    Names of GGUF files (q4_k_m) state no width for the whole file, so they count with the mean of the file.
    """
    is_gguf = weights.name.startswith("q")
    return weights.bytes_per_parameter if is_gguf else weights.bits / BITS_PER_BYTE


def nominal_kv_bytes(kv: KvFormat) -> float:
    """Return bytes per cached element by the width in the format's name, without scales: int4 is 0.5."""
    return kv.nominal_bytes_per_element


def kv_elements_per_token(layers: float, kv_heads: float, head_dim: float) -> float:
    """Return cached elements per token: keys and values of all KV heads (Pope et al., arXiv 2211.05102, section 2.1).

    Multi-head attention has as many KV heads as query heads, multi-query has one (Ainslie et al., arXiv 2305.13245).
    """
    return 2.0 * layers * kv_heads * head_dim


def parameters_read(total: float, experts: float, expert_share: float, batch: float) -> float:
    """Return the parameters that one decode step of `batch` tokens reads.

    Everything but routed experts is read once. Of `experts` parameters a token picks the share `expert_share` (0 to
    1), evenly and independently of the others: a step hits 1 - (1 - share)^batch of them.
    """
    missed: float = (1.0 - expert_share) ** batch
    return total - experts * missed


def decode_flops(active: float, batch: float) -> float:
    """Return FLOP of the matrix products of one decode step: two per active parameter and token."""
    return FLOPS_PER_PARAMETER * active * batch


def tokens_per_s(batch: float, step_s: float) -> float:
    """Return tokens per second when each step of `step_s` seconds gives every sequence of the batch one token."""
    return batch / step_s if step_s > 0.0 else 0.0


def ridge_flop_per_byte(flops: float, bandwidth_bytes_per_s: float) -> float:
    """Return the ridge: peak FLOP/s over bandwidth (Williams et al., Roofline, CACM 52(4), 2009)."""
    return flops / bandwidth_bytes_per_s


def weight_intensity(batch: float, bytes_per_parameter: float) -> float:
    """Return FLOP per byte of weights: each byte read serves the whole batch. The batch itself at 16 bits."""
    return FLOPS_PER_PARAMETER * batch / bytes_per_parameter


def batch_at(intensity: float, intensity_of: Callable[[float], float], most: float) -> float:
    """Return the batch, at most `most`, from which `intensity_of` a batch reaches `intensity`, both in FLOP per byte.

    By bisection: `intensity_of` rises with the batch.
    """
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if intensity_of(middle) < intensity else (low, middle)
    return high


def attention_intensity(heads: float, kv_heads: float, bytes_per_element: float) -> float:
    """Return FLOP per byte of decode attention, whatever the batch: every sequence reads its own cache.

    Per cached token and KV head, 2 head_dim elements are read and each of heads / kv_heads queries does
    2 x 2 head_dim FLOP: 1 for multi-head attention at 16 bits, 2 at 8 bits, and group size times that with GQA.
    """
    return FLOPS_PER_PARAMETER * heads / kv_heads / bytes_per_element


def latent_attention_intensity(heads: float, latent: float, rotary: float, bytes_per_element: float) -> float:
    """Return FLOP per byte of absorbed latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    All query heads share one latent of `latent` + `rotary` elements; scores use both parts, values the latent only.
    """
    flops = FLOPS_PER_PARAMETER * heads * (2.0 * latent + rotary)
    return flops / ((latent + rotary) * bytes_per_element)


def regime(intensity: float, ridge: float) -> Regime:
    """Tell the side of the ridge; within `BALANCED_WITHIN` of it a step is balanced."""
    if abs(intensity / ridge - 1.0) <= BALANCED_WITHIN:
        return Regime.BALANCED
    return Regime.MEMORY if intensity < ridge else Regime.COMPUTE


def contiguous_waste(used_tokens: float, reserved_tokens: float) -> float:
    """Return the share of a reservation of `reserved_tokens` that a sequence of `used_tokens` never fills."""
    return 1.0 - min(used_tokens, reserved_tokens) / reserved_tokens


def paged_waste(used_tokens: float, page_tokens: int = PAGE_TOKENS) -> float:
    """Return the share of its pages that a sequence leaves empty: less than one page."""
    pages = -(-used_tokens // page_tokens)
    return 1.0 - used_tokens / (pages * page_tokens)
