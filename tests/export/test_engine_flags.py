"""Every flag that is exported stands in the documentation of its engine."""

from __future__ import annotations

import re
from itertools import product

import pytest
from export_plans import DATA, chat, exported, of_pools, over_nodes

from planner.export.engine import Engine, all_engines
from planner.plan.schema import Pool

KV_CACHES = {"vllm": ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4"), "sglang": ("bf16", "fp16", "fp8")}


def documented(engine: str) -> tuple[str, set[str]]:
    """Return the release and the flags of the checked-in list of an engine."""
    text = (DATA / "engine_flags" / f"{engine}.txt").read_text(encoding="utf-8")
    lines = text.splitlines()
    release = next(line for line in lines if line.startswith("# release: ")).removeprefix("# release: ")
    return release, {line for line in lines if line.startswith("--")}


@pytest.mark.parametrize("engine", all_engines().values(), ids=lambda e: e.name)
def test_flags_of_an_engine_are_documented(engine: Engine) -> None:
    release, flags = documented(engine.name)

    assert release == engine.version
    assert {flag for flag in engine.flags.values() if flag} - flags == set()
    assert set(engine.worker) <= set(engine.flags)


@pytest.mark.parametrize("engine", sorted(KV_CACHES))
def test_every_exported_flag_is_documented(engine: str) -> None:
    _, flags = documented(engine)
    version = all_engines()[engine].version
    pools: list[Pool] = []
    for number, (kv_cache, weights, switch) in enumerate(
        product(KV_CACHES[engine], ("bf16", "fp16", "fp8"), (True, False))
    ):
        serving = {"chunked_prefill": switch, "prefix_caching": switch, "block_size": 32}
        layout = {"tensor_parallel": 2, "attention_data_parallel": 2, "expert_parallel": 4}
        formats = {"weights": weights, "kv_cache": kv_cache, "max_model_len": 8192}
        pools.append(
            chat({**serving, "gpus_in_node": 4}, name=f"p{number}", engine=engine, version=version, **formats, **layout)
        )
    pools.append(over_nodes(engine=engine, version=version))
    text = exported(of_pools(*pools), engine).text

    assert {*re.findall(r"(?m)(?:^ +|set -- )(--[a-z0-9-]+)", text)} - flags == set()


def test_every_engine_has_formats_for_what_it_serves() -> None:
    assert set(KV_CACHES) == set(all_engines())
