"""Format support: weight and KV formats that the engine or the GPU has no kernels for."""

from __future__ import annotations

from planner.candidates.rule import Draft, Rule

GGUF_ENGINE = "llama.cpp"
GGUF_WEIGHTS = frozenset({"q8_0", "q6_k", "q5_k_m", "q4_k_m"})
GGUF_KV = frozenset({"bf16", "fp16", "int8", "int4"})
WIDE_WEIGHTS = frozenset({"bf16", "fp16", "fp32"})
NEEDS_NATIVE_FP4 = frozenset({"nvfp4"})


def _check(draft: Draft) -> str | None:
    engine, weights, kv_cache = draft.model.spec.engine.name, draft.weights, draft.kv_cache
    if not draft.model.engine.supports(draft.device.vendor):
        return f"{engine} does not run on {draft.device.vendor} GPUs"
    if weights in GGUF_WEIGHTS and engine != GGUF_ENGINE:
        return f"{weights} is a llama.cpp format; the engine is {engine}"
    if engine == GGUF_ENGINE and weights not in GGUF_WEIGHTS | WIDE_WEIGHTS:
        return f"llama.cpp reads GGUF formats and 16-bit weights, not {weights}"
    if engine == GGUF_ENGINE and kv_cache not in GGUF_KV:
        return f"llama.cpp has no {kv_cache} KV cache; it has {', '.join(sorted(GGUF_KV))}"
    if kv_cache in NEEDS_NATIVE_FP4 and "fp4" not in draft.device.flops:
        return f"{kv_cache} KV cache needs native 4-bit floating point, which {draft.device.name} lacks"
    return None


RULE = Rule("format-support", 20, "Engine and GPU must have kernels for the formats.", _check)
