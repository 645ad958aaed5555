"""Words that a spec may use where the set is closed. GPU, model, provider and region names live in the catalog."""

from __future__ import annotations

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
"""Serving engines that the memory and speed models know."""

WEIGHT_FORMATS = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "q8_0", "q6_k", "q5_k_m", "q4_k_m")
"""Weight formats; the `q` formats are GGUF files of llama.cpp."""

KV_FORMATS = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4")
"""Formats of cached keys and values."""

SPOT = "spot"
TERMS = ("on-demand", SPOT, "1y", "3y")
"""Terms under which nodes can be bought."""

SURVIVE = ("replica", "node", "zone")

LATENCIES = ("ttft", "tpot", "itl", "e2e")
PERCENTILES = ("p50", "p90", "p95", "p99")
SLO_METRICS = tuple(f"{latency}_{percentile}" for latency in LATENCIES for percentile in PERCENTILES)
"""Every latency that a workload can bound, such as `ttft_p95`."""

DEFAULT_MAX_MODEL_LEN_TOKENS = 32768
"""Longest sequence when neither the spec nor a shorter model says so."""

SPEC_VERSION = 1
"""The version of the spec's grammar that this package reads."""
