"""What people, engines and tables call number formats of weights: one table for flags, start-up logs and measurements."""

from __future__ import annotations

from planner.physics.formats import WEIGHT_FORMATS

WIDE_LABELS = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16", "fp32": "fp32",
    "float32": "fp32",
}  # fmt: skip
WEIGHT_LABELS = {name: name for name in WEIGHT_FORMATS} | WIDE_LABELS | {
    "w8a8-fp8": "fp8", "w8a8": "int8", "w8a16": "int8", "int8 (eetq)": "int8", "bnb8": "int8", "uint4": "int4",
    "awq": "int4", "4-bit awq": "int4", "gptq": "int4", "4-bit gptq": "int4", "w4a16": "int4", "autoround": "int4",
    "fp4": "nvfp4", "bnb4": "nf4", "4-bit gguf": "q4_k_m",
}  # fmt: skip
"""Weight formats by their labels in lower case; every format is called by its own name too."""
