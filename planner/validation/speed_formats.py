"""Number formats as measurements of speed name them, in the names of the physics."""

from __future__ import annotations

import re

_WEIGHTS = {
    "fp16": "bf16", "bf16": "bf16", "fp8": "fp8", "int8": "int8", "int8 (eetq)": "int8", "fp4": "nvfp4",
    "nvfp4": "nvfp4", "mxfp4": "mxfp4", "q4_k_m": "q4_k_m", "q8_0": "q8_0", "int4": "int4", "uint4": "int4", "awq": "int4",
    "4-bit awq": "int4", "4-bit gptq": "int4", "gptq": "int4", "4-bit gguf": "q4_k_m", "w4a16": "int4",
}  # fmt: skip
WEIGHT_WORDS = (*sorted(_WEIGHTS), "exl2 4.0 bpw")
"""What a weight format can be called, the last one with any number of bits."""
KV_WORDS = ("auto", "bf16", "fp16", "fp8", "int8")
_EXL2 = re.compile(r"exl2 (?P<bits>\d\.\d) bpw")


def weight_format(stated: str) -> str | None:
    """Return the weight format that a word stands for, ignoring case, None for a word that is not known."""
    word = stated.casefold()
    bits = _EXL2.fullmatch(word)
    if bits:
        return "q3_k_m" if float(bits["bits"]) < 4.0 else "q4_k" if float(bits["bits"]) < 5.0 else "q5_k"
    return _WEIGHTS.get(word)


def kv_format(stated: str) -> str:
    """Return the cache format that a word stands for: 8 bits where it begins so (`fp8_e4m3`), else bf16."""
    word = stated.casefold()
    return "fp8" if word.startswith("fp8") else "int8" if word.startswith("int8") else "bf16"


def is_kv_word(stated: str) -> bool:
    """Tell whether a word names a cache format."""
    return stated.casefold() in KV_WORDS or kv_format(stated) != "bf16"
