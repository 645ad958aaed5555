"""vLLM: `vllm serve`."""

from __future__ import annotations

from planner.catalog.engine import version_key
from planner.export.engine import SHARED_FLAGS, Engine, Launch, Settings, Unsupported, shared_settings

FLAGS = {
    "model": "",
    **SHARED_FLAGS,
    "expert": "--enable-expert-parallel",
    "max_model_len": "--max-model-len",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "memory": "--gpu-memory-utilization",
    "block_size": "--block-size",
    "prefix_caching": "--enable-prefix-caching",
    "no_prefix_caching": "--no-enable-prefix-caching",
    "chunked_prefill": "--enable-chunked-prefill",
    "no_chunked_prefill": "--no-enable-chunked-prefill",
    "leader": "--master-addr",
    "headless": "--headless",
}
KV_CACHE = {
    "bf16": "auto",
    "fp16": "auto",
    "fp8": "fp8",
    "int8": "int8_per_token_head",
    "int4": "int4_per_token_head",
    "nvfp4": "nvfp4",
}
"""`auto` is the 16-bit type of the model; naming another one is refused."""
ONLINE_SCHEMES_SINCE = "0.20"
"""Release that names the scheme of quantisation on load; releases soon after it refuse plain `fp8` for 16-bit weights."""


def _settings(launch: Launch) -> Settings:
    pool, serving = launch.pool, launch.serving
    if not serving.chunked_prefill and pool.max_num_batched_tokens < pool.max_model_len:
        raise Unsupported(
            f"vLLM does not start without chunked prefill when max_num_batched_tokens ({pool.max_num_batched_tokens}) is "
            f"below max_model_len ({pool.max_model_len})",
            "set engine.chunked_prefill or a larger engine.max_num_batched_tokens in the spec, and solve again",
        )
    # The cap of a plan is that of a replica; each data-parallel rank of the engine has one of its own.
    slots = -(-pool.max_num_seqs // pool.attention_data_parallel)
    if slots > pool.max_num_batched_tokens:
        raise Unsupported(
            f"vLLM does not start with max_num_batched_tokens ({pool.max_num_batched_tokens}) below max_num_seqs ({slots})",
            "set a larger engine.max_num_batched_tokens in the spec, and solve again",
        )
    if pool.attention_data_parallel > 1 and launch.nodes > 1:
        raise Unsupported("data-parallel attention over several nodes has no export yet")
    found = shared_settings(launch, pool.tensor_parallel, KV_CACHE, _on_load)
    found["max_num_seqs"] = str(slots)
    if "expert" in found:
        found["expert"] = None
    found["prefix_caching" if serving.prefix_caching else "no_prefix_caching"] = None
    found["chunked_prefill" if serving.chunked_prefill else "no_chunked_prefill"] = None
    return found


def _on_load(weights: str, version: str) -> str | None:
    if weights != "fp8":
        return None
    return "fp8_per_tensor" if version_key(version) >= version_key(ONLINE_SCHEMES_SINCE) else "fp8"


ENGINE = Engine(
    name="vllm",
    version="0.33",
    source="https://docs.vllm.ai/en/latest/cli/serve/",
    program=("vllm", "serve"),
    flags=FLAGS,
    settings=_settings,
    on_load=_on_load,
    images={"nvidia": "vllm/vllm-openai:v{version}"},
    package="vllm=={version}",
    running="vllm:num_requests_running",
    worker=("headless",),
)
