"""SGLang: `python3 -m sglang.launch_server`."""

from __future__ import annotations

from planner.export.engine import SHARED_FLAGS, Engine, Launch, Settings, shared_settings

FLAGS = {
    "model": "--model-path",
    **SHARED_FLAGS,
    "attention_data": "--enable-dp-attention",
    "expert": "--expert-parallel-size",
    "max_model_len": "--context-length",
    "max_num_seqs": "--max-running-requests",
    "chunk": "--chunked-prefill-size",
    "max_num_batched_tokens": "--max-prefill-tokens",
    "memory": "--mem-fraction-static",
    "block_size": "--page-size",
    "no_prefix_caching": "--disable-radix-cache",
    "metrics": "--enable-metrics",
    "leader": "--dist-init-addr",
}
KV_CACHE = {"bf16": "auto", "fp16": "auto", "fp8": "fp8_e4m3"}
"""`auto` is the 16-bit type of the model."""


def _settings(launch: Launch) -> Settings:
    pool, serving = launch.pool, launch.serving
    ranks = pool.attention_data_parallel
    # Its tensor-parallel size counts all GPUs of a stage; data-parallel attention divides them into groups.
    found = shared_settings(launch, pool.tensor_parallel * ranks, KV_CACHE, _on_load)
    if ranks > 1:
        found["attention_data"] = None
    # With data-parallel attention, each rank gets its share of this flag; prompts of the plan are cut at the whole number.
    found["chunk"] = str(pool.max_num_batched_tokens * ranks) if serving.chunked_prefill else "-1"
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
