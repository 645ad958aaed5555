"""Number formats as measurements of speed name them, in the names of the physics."""

from __future__ import annotations

import re

from planner.physics.format_labels import WEIGHT_LABELS

WEIGHT_WORDS = (*sorted(WEIGHT_LABELS), "exl2 4.0 bpw")
"""What a weight format can be called, the last one with any number of bits."""
KV_WORDS = ("auto", "bf16", "fp16", "fp8", "int8")
_EXL2 = re.compile(r"exl2 (?P<bits>\d\.\d) bpw")


def weight_format(stated: str) -> str | None:
    """Return the weight format that a word stands for, ignoring case, None for a word that is not known.

    The speed model counts all 16-bit formats as one.
    """
    bits = stated_bits(stated)
    if bits is not None:
        return "q3_k_m" if bits < 4.0 else "q4_k" if bits < 5.0 else "q5_k"
    found = WEIGHT_LABELS.get(stated.casefold())
    return "bf16" if found == "fp16" else found


def stated_bits(stated: str) -> float | None:
    """Return the bits per weight that a word states itself, None for others. The format of such a word is the nearest."""
    bits = _EXL2.fullmatch(stated.casefold())
    return float(bits["bits"]) if bits else None


def kv_format(stated: str) -> str:
    """Return the cache format that a word stands for: 8 bits where it begins so (`fp8_e4m3`), else bf16."""
    word = stated.casefold()
    return "fp8" if word.startswith("fp8") else "int8" if word.startswith("int8") else "bf16"


def is_kv_word(stated: str) -> bool:
    """Tell whether a word names a cache format."""
    return stated.casefold() in KV_WORDS or kv_format(stated) != "bf16"
