"""SGLang: `python3 -m sglang.launch_server`."""

from __future__ import annotations

from planner.export.engine import PLANNED_BLOCK_SIZE, WIDE_DTYPES, Engine, Launch, Settings, Unsupported

FLAGS = {
    "model": "--model-path",
    "served_name": "--served-model-name",
    "host": "--host",
    "port": "--port",
    "tensor": "--tensor-parallel-size",
    "pipeline": "--pipeline-parallel-size",
    "data": "--data-parallel-size",
    "attention_data": "--enable-dp-attention",
    "expert": "--expert-parallel-size",
    "dtype": "--dtype",
    "quantization": "--quantization",
    "kv_cache": "--kv-cache-dtype",
    "max_model_len": "--context-length",
    "max_num_seqs": "--max-running-requests",
    "chunk": "--chunked-prefill-size",
    "max_num_batched_tokens": "--max-prefill-tokens",
    "memory": "--mem-fraction-static",
    "block_size": "--page-size",
    "no_prefix_caching": "--disable-radix-cache",
    "metrics": "--enable-metrics",
    "nodes": "--nnodes",
    "rank": "--node-rank",
    "leader": "--dist-init-addr",
}
KV_CACHE = {"bf16": "auto", "fp16": "auto", "fp8": "fp8_e4m3"}
"""`auto` is the 16-bit type of the model."""


def _settings(launch: Launch) -> Settings:
    pool, serving = launch.pool, launch.serving
    if pool.kv_cache not in KV_CACHE:
        raise Unsupported(
            f"SGLang has no {pool.kv_cache} KV cache", f"set kv_cache to some of {', '.join(KV_CACHE)} and solve again"
        )
    ranks = pool.attention_data_parallel
    found: dict[str, str | None] = {}
    # Its tensor-parallel size counts all GPUs of a stage; data-parallel attention divides them into groups.
    if pool.tensor_parallel * ranks > 1:
        found["tensor"] = str(pool.tensor_parallel * ranks)
    if pool.pipeline_parallel > 1:
        found["pipeline"] = str(pool.pipeline_parallel)
    if ranks > 1:
        found |= {"data": str(ranks), "attention_data": None}
    if pool.expert_parallel > 1:
        found["expert"] = str(pool.expert_parallel)
    if pool.weights in WIDE_DTYPES:
        found["dtype"] = WIDE_DTYPES[pool.weights]
    if launch.quantised_on_load:
        found["quantization"] = _on_load(pool.weights, pool.engine.version)
    found["kv_cache"] = KV_CACHE[pool.kv_cache]
    found["max_model_len"] = str(pool.max_model_len)
    found["max_num_seqs"] = str(pool.max_num_seqs)
    # With data-parallel attention, each rank gets its share of this flag; prompts of the plan are cut at the whole number.
    found["chunk"] = str(pool.max_num_batched_tokens * ranks) if serving.chunked_prefill else "-1"
    found["max_num_batched_tokens"] = str(pool.max_num_batched_tokens)
    found["memory"] = f"{serving.gpu_memory_utilization:g}"
    if serving.block_size != PLANNED_BLOCK_SIZE:
        found["block_size"] = str(serving.block_size)
    if not serving.prefix_caching:
        found["no_prefix_caching"] = None
    found["metrics"] = None
    return found


def _on_load(weights: str, version: str) -> str | None:  # noqa: ARG001
    return "fp8" if weights == "fp8" else None


ENGINE = Engine(
    name="sglang",
    version="0.5.7",
    source="https://docs.sglang.io/advanced_features/server_arguments.html",
    program=("python3", "-m", "sglang.launch_server"),
    flags=FLAGS,
    settings=_settings,
    on_load=_on_load,
    images={"nvidia": "lmsysorg/sglang:v{version}"},
    package="sglang[all]=={version}",
    running="sglang:num_running_reqs",
    leader=":20000",
)
