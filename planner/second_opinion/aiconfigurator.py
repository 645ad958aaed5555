"""The model of speed behind NVIDIA's aiconfigurator: kernels measured one by one, added up to steps.

Names are mapped here; the library is imported when it is asked for. It reads its own files, never the network: models
are given as configurations that it ships or that are written for it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planner.physics.types import Architecture
from planner.second_opinion.types import Absent, Figures, Question, Reply, Uncovered

INSTALL = "pip install 'llm-fleet-planner[aiconfigurator]'"

SYSTEMS = {
    "A100-SXM-80GB": "a100_sxm",
    "Arc-Pro-B60": "b60",
    "B200-SXM-180GB": "b200_sxm",
    "B300-SXM-288GB": "b300_sxm",
    "GB200": "gb200",
    "GB300": "gb300",
    "H100-SXM-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200_sxm",
    "L40S": "l40s",
    "RTX-PRO-6000-Server": "rtx_pro_6000_server",
}
"""GPUs with measured tables, by the names of the catalog. H100 and A100 PCIe, A30 and L4 have datasheets only there."""

BACKENDS = {"sglang": "sglang", "tensorrt-llm": "trtllm", "vllm": "vllm"}

WEIGHTS = {
    "bf16": ("bfloat16", "bfloat16"),
    "fp16": ("bfloat16", "bfloat16"),
    "fp8": ("fp8", "fp8"),
    "fp8-block": ("fp8_block", "fp8_block"),
    "int8": ("sq", ""),
    "int4": ("int4_wo", "int4_wo"),
    "mxfp4": ("bfloat16", "w4a16_mxfp4"),
    "nvfp4": ("nvfp4", "nvfp4"),
}
"""Modes of dense and of expert products by weight format; empty where the library has none."""

KV_CACHES = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8", "int8": "int8"}

_FOLDER = re.compile(r"at \S*/systems/data/")


@dataclass(frozen=True)
class Aiconfigurator:
    """A reviewer. `estimate` is `aiconfigurator.cli.api.cli_estimate`, `shipped` the models it knows by name."""

    name: str
    estimate: Any
    shipped: frozenset[str]
    shape_of: Any

    @classmethod
    def load(cls) -> Aiconfigurator:
        """Import the library. Raises `Absent`."""
        try:
            from aiconfigurator.cli.api import cli_estimate
            from aiconfigurator.sdk.common import DefaultHFModels
            from aiconfigurator.sdk.utils import get_model_config_from_model_path
        except Exception as error:
            why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
            raise Absent(f"aiconfigurator {why}: {INSTALL}") from error
        known = frozenset(DefaultHFModels)
        return cls(f"aiconfigurator {version('aiconfigurator')}", cli_estimate, known, get_model_config_from_model_path)

    def answer(self, question: Question) -> Reply:
        """Answer with the measured tables only. Raises `Uncovered`, and whatever the library raises."""
        arguments = call_of(question)
        with self._model(question.architecture) as model:
            modes = quantisation(question, is_checkpoint=model == question.architecture.name)
            try:
                loaded = self.estimate(model, **arguments, **modes)
                alone = self.estimate(model, **{**arguments, "batch_size": 1}, **modes)
            except Exception as error:
                raise Uncovered(_FOLDER.sub("in the tables of ", str(error))) from error
        figures = Figures(
            tpot_s=float(loaded.tpot) / 1e3,
            requests_per_s=float(loaded.raw["seq/s"]),
            ttft_alone_s=float(alone.ttft) / 1e3,
        )
        return Reply(figures, f"{loaded.backend_name} {loaded.backend_version} on {loaded.system_name}")

    @contextmanager
    def _model(self, architecture: Architecture) -> Iterator[str]:
        """Give the name of a shipped configuration of this shape, or a folder with one written for it."""
        if architecture.name in self.shipped:
            yield architecture.name
        elif is_plain(architecture):
            with tempfile.TemporaryDirectory(prefix="planner-") as folder:
                Path(folder, "config.json").write_text(json.dumps(plain_config(architecture)), encoding="utf-8")
                yield folder
        else:
            yield self._same_shape(architecture)

    def _same_shape(self, architecture: Architecture) -> str:
        maker = architecture.name.partition("/")[0]
        for name in sorted(self.shipped, key=lambda known: (not known.startswith(f"{maker}/"), known)):
            if is_same_shape(architecture, self.shape_of(name)):
                return name
        raise Uncovered(f"it has no model of the shape of {architecture.name}")


def call_of(question: Question) -> dict[str, Any]:
    """Return the arguments of an estimate: batch sizes are those of one attention-data rank and pipeline microbatch.

    Raises `Uncovered` for a GPU or an engine that the library has no tables of.
    """
    q = question
    if q.gpu not in SYSTEMS:
        raise Uncovered(f"it has no measured tables of {q.gpu}")
    if q.engine not in BACKENDS:
        raise Uncovered(f"it does not know the engine {q.engine}")
    stage = q.tensor * q.attention_data
    computed = q.input_tokens - q.cached_tokens
    experts = {"moe_ep_size": q.expert, "moe_tp_size": stage // q.expert} if q.architecture.is_moe else {}
    return {
        "system_name": SYSTEMS[q.gpu],
        "backend_name": BACKENDS[q.engine],
        "database_mode": "SILICON",
        "isl": q.input_tokens,
        "osl": q.output_tokens,
        "prefix": q.cached_tokens,
        "batch_size": q.in_flight // (q.pipeline * q.attention_data),
        "ctx_tokens": q.input_tokens if computed <= q.chunk_tokens else q.chunk_tokens,
        "tp_size": q.tensor,
        "pp_size": q.pipeline,
        "attention_dp_size": q.attention_data,
        **experts,
    }


def quantisation(question: Question, is_checkpoint: bool) -> dict[str, str | None]:
    """Return the modes of weights and cache; None follows the checkpoint itself, where it is asked about as published.

    Raises `Uncovered` for a format without a mode.
    """
    q = question
    if q.kv_cache not in KV_CACHES:
        raise Uncovered(f"it has no mode for a KV cache in {q.kv_cache}")
    modes: Mapping[str, str | None] = {"kvcache_quant_mode": KV_CACHES[q.kv_cache]}
    if is_checkpoint and q.weights == q.architecture.native_format:
        return {**modes, "gemm_quant_mode": None, "moe_quant_mode": None}
    dense, experts = WEIGHTS.get(q.weights, ("", ""))
    if not dense or (q.architecture.is_moe and not experts):
        raise Uncovered(f"it has no mode for weights in {q.weights}{' with experts' if dense else ''}")
    return {**modes, "gemm_quant_mode": dense, "moe_quant_mode": experts or None}


def is_plain(architecture: Architecture) -> bool:
    """Tell whether a model is dense, with the same attention over the whole context in all layers."""
    a = architecture
    special = a.n_local_layers or a.n_state_layers or a.n_cross_layers
    return not (a.is_moe or a.is_mla or special) and a.gated_mlp and a.n_attention_layers == a.n_layers


def plain_config(architecture: Architecture) -> dict[str, Any]:
    """Return the `config.json` of a plain model."""
    a = architecture
    return {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": a.n_layers,
        "hidden_size": a.d_model,
        "num_attention_heads": a.n_heads,
        "num_key_value_heads": a.n_kv_heads,
        "head_dim": a.head_dim,
        "intermediate_size": a.d_ff,
        "vocab_size": a.vocab,
        "max_position_embeddings": a.max_position,
    }


def is_same_shape(architecture: Architecture, shape: Mapping[str, Any]) -> bool:
    """Tell whether a shape as the library reads it is that of a model, by everything that its speed depends on."""
    a = architecture
    ours = (a.n_layers, a.d_model, a.n_heads, a.n_experts, a.experts_per_token, a.vocab)
    return ours == tuple(shape[key] for key in ("layers", "hidden_size", "n", "num_experts", "topk", "vocab"))
