"""The real library; skipped where it is not installed."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from opinion_cases import Told, question
from planned import PlanOnce

from planner.catalog import Catalog
from planner.report.second_opinion import render
from planner.second_opinion import Uncovered, review
from planner.second_opinion.aiconfigurator import SYSTEMS, Aiconfigurator, is_plain, is_same_shape, plain_config

pytest.importorskip("aiconfigurator")

ONE_POOL = """\
version: 1
fleet: small
models:
  chat: {use: qwen3-32b, max_model_len: 8k, weights: [fp8], kv_cache: [bf16]}
workloads:
  assistant:
    model: chat
    traffic: {rate: 4 req/s, input_tokens: 800, output_tokens: 200}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
supply:
  offers: [{name: cloud, provider: aws, gpus: [H100-SXM-80GB], regions: [us-east-1]}]
"""


@pytest.fixture(scope="module")
def library() -> Aiconfigurator:
    """The library, imported once."""
    return Aiconfigurator.load()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_dense_model_of_any_name(library: Aiconfigurator, catalog: Catalog) -> None:
    figures = library.answer(question(catalog)).figures

    assert 0.015 < figures.tpot_s < 0.06
    assert 1.5 < figures.requests_per_s < 8.0
    assert 0.05 < figures.ttft_alone_s < 0.5


def test_a_configuration_written_here_is_read_as_the_shipped_one(library: Aiconfigurator, catalog: Catalog) -> None:
    model = catalog.architecture("meta-llama/Llama-3.1-70B-Instruct")
    written, shipped = plain_config(model), library.shape_of("meta-llama/Meta-Llama-3.1-70B")

    assert is_plain(model)
    assert is_same_shape(model, shipped)
    assert (written["intermediate_size"], written["head_dim"]) == (shipped["inter_size"], shipped["d"])
    assert written["num_key_value_heads"] == shipped["n_kv"]


def test_a_mixture_of_experts_by_its_name(library: Aiconfigurator, catalog: Catalog) -> None:
    asked = question(catalog, "gpt-oss-120b", weights="mxfp4", kv_cache="bf16")

    assert 0.003 < library.answer(asked).figures.tpot_s < 0.04


def test_a_format_without_tables_is_a_reason(library: Aiconfigurator, catalog: Catalog) -> None:
    with pytest.raises(Uncovered, match="in the tables of a100_sxm/vllm"):
        library.answer(question(catalog, gpu="A100-SXM-80GB", weights="int4", kv_cache="bf16"))


def test_every_gpu_is_a_system_that_it_has_tables_of() -> None:
    from aiconfigurator.sdk.perf_database import get_latest_database_version

    assert all(get_latest_database_version(system=system, backend="vllm") for system in SYSTEMS.values())


def test_a_whole_review(library: Aiconfigurator, catalog: Catalog, plan_once: PlanOnce) -> None:
    planned = plan_once(ONE_POOL)
    found = review(planned.plan, planned.spec, catalog, library)
    text = render(found)

    assert all(o.covered for o in found.opinions)
    assert all(0.3 < o.theirs.tpot_s / o.best.tpot_s < 3.0 for o in found.opinions if o.theirs and o.best)
    assert text.startswith("Second opinion: aiconfigurator 0.12.0\n")
    assert "vllm 0.24.0 on h100_sxm" in text
    assert found == review(planned.plan, planned.spec, catalog, Told(library.answer, library.name))
