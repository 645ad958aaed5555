"""Deployments for the tests of estimates."""

from __future__ import annotations

from typing import Any

from planner.catalog import Catalog
from planner.estimate.answer import Estimate, Load, LoadKind, Search
from planner.estimate.deployment import Deployment, Request, deploy
from planner.estimate.estimate import estimate
from planner.estimate.memory import Fit, fit

GIB = 2.0**30
CATALOG = Catalog.open()
LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_405B_FP8 = "meta-llama/Llama-3.1-405B-Instruct-FP8"
R1 = "deepseek-ai/DeepSeek-R1"
V2 = "deepseek-ai/DeepSeek-V2-Chat"
GPT_OSS = "openai/gpt-oss-120b"
VLM_8B = "Qwen/Qwen3-VL-8B-Instruct"
H100 = "H100-SXM-80GB"
H200 = "H200-SXM-141GB"
A100 = "A100-SXM-80GB"


def deployed(model: str, gpu: str, **asked: Any) -> Deployment:
    """Return a deployment of catalog names."""
    return deploy(Request(**asked), CATALOG, model, gpu)


def fitted(model: str, gpu: str, **asked: Any) -> Fit:
    """Return the memory of a deployment."""
    return fit(deployed(model, gpu, **asked))


def estimated(
    model: str, gpu: str, kind: LoadKind = LoadKind.BATCH, value: float = 1.0, search: Search | None = None,
    limits: dict[str, float] | None = None, **asked: Any,
) -> Estimate:  # fmt: skip
    """Return the whole estimate of a deployment."""
    load = Load(kind, value, limits_s=limits or {})
    return estimate(deployed(model, gpu, **asked), load, CATALOG, search)


def gib(size: float) -> float:
    """Return bytes in GiB."""
    return size / GIB
