"""One start-up log as inputs of the memory model: what the row states, and named defaults for its blanks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from planner.catalog import Catalog, UnknownName
from planner.catalog.canonical import tidy
from planner.physics.memory import EngineMemory, Outcome, UnknownArchitecture, UnknownFormat, weights_bytes
from planner.physics.types import Architecture, Device, Layout
from planner.validation.table import EXCESS, Row

GIB = 2.0**30
MOST_GPUS = 64
WIDE = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "fp32": "fp32",
    "float32": "fp32",
}
WEIGHT_LABELS = WIDE | {
    "fp8": "fp8", "w8a8-fp8": "fp8", "int8": "int8", "w8a8": "int8", "w8a16": "int8", "int4": "int4", "awq": "int4",
    "gptq": "int4", "w4a16": "int4", "autoround": "int4", "nvfp4": "nvfp4", "fp4": "nvfp4", "mxfp4": "mxfp4", "bnb4": "nf4",
    "nf4": "nf4", "bnb8": "int8", "q8_0": "q8_0", "q6_k": "q6_k", "q5_k_m": "q5_k_m", "q4_k_m": "q4_k_m", "q3_k_m": "q3_k_m",
}  # fmt: skip
"""Weight formats by the labels of logs."""
KV_LABELS = WIDE | {
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "int8": "int8",
    "int4": "int4",
    "nvfp4": "nvfp4",
}
ENGINE_LABELS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm", "trt-llm": "tensorrt-llm", "trtllm": "tensorrt-llm", "llama.cpp": "llama.cpp"}  # fmt: skip
_NAMED_FORMATS = (("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8", "fp8"), ("w4a16", "int4"), ("w8a8", "int8"), ("awq", "int4"), ("gptq", "int4"), ("int4", "int4"), ("4bit", "int4"), ("int8", "int8"))  # fmt: skip
LAST_OLD_SCHEDULER = "0.6"
"""vLLM release that stands for the scheduler called V0."""
_VERSION = re.compile(r"\d+\.\d+|b\d+")
_ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)\s+(?:PR\s*)?#\s*(?P<number>\d{1,7})")


class NotScored(Exception):  # noqa: N818
    """A row that cannot be scored; `scorable` tells whether it states enough and the planner is what is lacking."""

    def __init__(self, reason: str, scorable: bool) -> None:
        self.reason = reason
        self.scorable = scorable
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class StartUp:
    """Inputs of one start-up; `defaults` names what the row left blank."""

    case: str
    source: str
    engine: str
    version: str
    arch: Architecture
    arch_class: str
    device: Device
    layout: Layout
    weights: str
    kv: str
    memory: EngineMemory
    max_model_len: int
    max_num_seqs: int
    batched_tokens: int
    chunked: bool
    memory_fraction: float
    defaults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a log prints, None where it does not. Sizes in GiB per GPU, as printed."""

    weights_gib: float | None
    activation_gib: float | None
    runtime_gib: float | None
    graphs_gib: float | None
    kv_gib: float | None
    kv_tokens: float | None
    max_concurrency: float | None
    outcome: Outcome | None


def measured(row: Row) -> Measured:
    """Return the measured side of a row. Cells that are no numbers count as blank."""
    return Measured(
        weights_gib=_number(row, "weights_gib_per_gpu"),
        activation_gib=_number(row, "activation_gib"),
        runtime_gib=_number(row, "non_torch_gib"),
        graphs_gib=_number(row, "cudagraph_gib"),
        kv_gib=_number(row, "kv_gib_per_gpu"),
        kv_tokens=_number(row, "kv_tokens"),
        max_concurrency=_number(row, "max_concurrency"),
        outcome=_outcome(row.get("outcome", "")),
    )


def _outcome(text: str) -> Outcome | None:
    folded = text.casefold()
    if folded.startswith("ok"):
        return Outcome.OK
    if folded.startswith("oom"):
        return Outcome.OOM
    return Outcome.KV_TOO_SMALL if folded.replace("_", " ").startswith("kv too small") else None


def start_up(row: Row, catalog: Catalog, number: int) -> StartUp:
    """Return the inputs of a row. Raises `NotScored` with the reason.

    A row is scorable when it names its model without inference, and its GPU or the total memory is known.
    """
    return _Reader(row, catalog, number).read()


class _Reader:
    """Reads one row; blanks are filled in the order in which engines decide them."""

    def __init__(self, row: Row, catalog: Catalog, number: int) -> None:
        self._row = row
        self._catalog = catalog
        self._case = tidy(row.get("case_id", "") or f"row {number}")
        self._defaults: list[str] = []

    def read(self) -> StartUp:
        row = self._row
        if EXCESS in row:
            raise NotScored("more cells than columns", scorable=True)
        if row.get("model_inferred", "").casefold() in {"yes", "true", "1"}:
            raise NotScored("the model is inferred", scorable=False)
        if not row.get("model", ""):
            raise NotScored("no model is named", scorable=False)
        label = self._label()
        device = self._device()
        arch = self._catalog.architecture(label)
        engine, version = self._engine()
        memory = self._catalog.engine(engine, version).memory
        weights = self._weights(arch)
        kv = self._kv(weights)
        layout = self._layout(arch, device, weights)
        longest = self._whole("max_model_len")
        if longest is None:
            longest = arch.max_position
            self._defaults.append(f"max_model_len {longest}")
        return StartUp(
            case=self._case,
            source=tidy(row.get("source", "")),
            engine=engine,
            version=version,
            arch=arch,
            arch_class=tidy(row.get("arch_class", "")) or arch_class(arch),
            device=device,
            layout=layout,
            weights=weights,
            kv=kv,
            memory=memory,
            max_model_len=longest,
            max_num_seqs=self._filled("max_num_seqs", memory.max_num_seqs_on(device)),
            batched_tokens=self._filled("max_num_batched_tokens", memory.batched_tokens_on(device, arch)),
            chunked=memory.chunks_prompts(longest),
            memory_fraction=self._fraction(memory),
            defaults=tuple(self._defaults),
        )

    def _label(self) -> str:
        """Resolve the model: a row whose model nobody could name is not scorable, an unknown one is."""
        named = self._row["model"]
        try:
            label = self._catalog.model_label(named)
        except UnknownName:
            raise NotScored(f"model {tidy(named)}: not in the catalog", self._memory_known()) from None
        if label.absent:
            raise NotScored(f"model: {label.absent}", label.absent != "names no model" and self._memory_known())
        return label.name

    def _memory_known(self) -> bool:
        return bool(_number(self._row, "total_gpu_gib") or self._known_gpu())

    def _known_gpu(self) -> str:
        named = self._row.get("gpu", "")
        try:
            return self._catalog.gpu_label(named).gpu if named else ""
        except UnknownName:
            return ""

    def _device(self) -> Device:
        total = _number(self._row, "total_gpu_gib")
        name = self._known_gpu()
        if total is not None and not 1.0 <= total <= 10_000.0:
            raise NotScored("the total memory is impossible", scorable=True)
        if name:
            device = self._catalog.gpu(name).device()
            return replace(device, usable_bytes=total * GIB) if total else device
        if total is None:
            reason = f"GPU {tidy(self._row['gpu'])}: not in the catalog" if self._row.get("gpu") else "no GPU is named"
            raise NotScored(reason, scorable=False)
        return Device(
            tidy(self._row.get("gpu", "")) or "GPU", "", "", total * GIB, 1.0, {"bf16": 1.0}, "pcie", 0.0, 1, 1.0
        )

    def _engine(self) -> tuple[str, str]:
        named = self._row.get("engine", "").casefold()
        engine = ENGINE_LABELS.get(named)
        if engine is None:
            raise NotScored(f"engine {tidy(named) or 'not named'}: not modelled", scorable=True)
        stated = self._row.get("engine_version", "")
        if _VERSION.search(stated):
            return engine, stated.split()[0].lstrip("v")
        if stated.casefold().startswith("v0"):
            self._defaults.append(f"{engine} {LAST_OLD_SCHEDULER} (old scheduler)")
            return engine, LAST_OLD_SCHEDULER
        version, why = self._undated(engine)
        self._defaults.append(f"{engine} {version} ({why})")
        return engine, version

    def _undated(self, engine: str) -> tuple[str, str]:
        undated = self._catalog.labels.versions.get(engine)
        if undated is None:
            return self._catalog.engine_file(engine).newest, "the newest known"
        found = _ISSUE.search(self._row.get("source", ""))
        if found and found["repository"] == undated.repository:
            version = undated.version_at(int(found["number"]))
            if version:
                return version, "by the number of the issue"
        return undated.usual, "usual for logs without one"

    def _weights(self, arch: Architecture) -> str:
        stated = self._row.get("weight_dtype", "").casefold()
        if stated in WEIGHT_LABELS:
            found = WEIGHT_LABELS[stated]
            return arch.native_format if found in WIDE and arch.native_format in WIDE and found != "fp32" else found
        if stated:
            raise NotScored(f"weight format {tidy(stated)}: not known", scorable=True)
        folded = self._row["model"].casefold().replace("-", "")
        weights = next((fmt for mark, fmt in _NAMED_FORMATS if mark in folded), arch.native_format)
        self._defaults.append(f"weights {weights}")
        return weights

    def _kv(self, weights: str) -> str:
        stated = self._row.get("kv_dtype", "").casefold()
        if stated in KV_LABELS:
            return KV_LABELS[stated]
        if stated and stated != "auto":
            raise NotScored(f"KV format {tidy(stated)}: not known", scorable=True)
        kv = weights if weights in {"fp16", "fp32"} else "bf16"
        self._defaults.append(f"kv_cache {kv}")
        return kv

    def _layout(self, arch: Architecture, device: Device, weights: str) -> Layout:
        gpus, tensor, pipeline = self._whole("n_gpus"), self._whole("tp"), self._whole("pp") or 1
        if tensor is None:
            tensor = max(gpus // pipeline, 1) if gpus else self._least_tensor(arch, device, weights)
            self._defaults.append(f"tp {tensor}")
        if tensor * pipeline > MOST_GPUS:
            raise NotScored(f"more than {MOST_GPUS} GPUs", scorable=True)
        return Layout(tensor=tensor, pipeline=pipeline)

    @staticmethod
    def _least_tensor(arch: Architecture, device: Device, weights: str) -> int:
        """Return the least power of two of GPUs whose memory the weights fit: what a reader of such a report assumes."""
        tensor = 1
        while tensor < MOST_GPUS and weights_bytes(arch, Layout(tensor=tensor), weights) > 0.9 * device.usable_bytes:
            tensor *= 2
        return tensor

    def _fraction(self, memory: EngineMemory) -> float:
        stated = _number(self._row, "gpu_memory_utilization")
        if stated is None:
            self._defaults.append(f"gpu_memory_utilization {memory.default_fraction:g}")
            return memory.default_fraction
        if not 0.0 < stated <= 1.0:
            raise NotScored("the memory share is not above 0 and at most 1", scorable=True)
        return stated

    def _filled(self, column: str, default: int) -> int:
        stated = self._whole(column)
        if stated is None:
            self._defaults.append(f"{column} {default}")
            return default
        return stated

    def _whole(self, column: str) -> int | None:
        text = self._row.get(column, "")
        if not text:
            return None
        value = _number(self._row, column)
        if value is None or value != int(value) or not 1 <= value <= 1e8:
            raise NotScored(f"{column} is no count", scorable=True)
        return int(value)


def _number(row: Row, column: str) -> float | None:
    try:
        value = float(row.get(column, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def arch_class(arch: Architecture) -> str:
    """Return the class of a model in the words of start-up logs."""
    if arch.n_state_layers:
        return "hybrid_linear"
    if arch.is_mla:
        return "mla_moe" if arch.is_moe else "mla"
    if arch.vision_parameters:
        return "vlm"
    if 0 < arch.n_local_layers < arch.n_attention_layers:
        return "sliding"
    if arch.is_moe:
        return "moe_gqa"
    return "dense_mha" if arch.n_kv_heads == arch.n_heads else "dense_gqa"


__all__ = [
    "Measured",
    "NotScored",
    "StartUp",
    "UnknownArchitecture",
    "UnknownFormat",
    "arch_class",
    "measured",
    "start_up",
]
