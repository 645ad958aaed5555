"""One start-up log as inputs of the memory model: what the row states, and named defaults for its blanks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from planner.catalog import Catalog, UnknownName
from planner.catalog.canonical import tidy
from planner.catalog.engine import version_key
from planner.physics.format_labels import WEIGHT_LABELS, WIDE_LABELS
from planner.physics.memory import EngineMemory, weights_bytes
from planner.physics.types import Architecture, Device, Layout
from planner.validation.cells import PLACE, Kind, NotScored, Row, number, quoted, refuse_unreadable
from planner.validation.impossible import check_layout
from planner.validation.measured import GIB, LARGEST_GIB, ROUNDING
from planner.validation.skips import name_reason

MOST_GPUS = 64
TOTAL = Kind("memory of a card in GiB", 1.0, LARGEST_GIB)
SHARE = Kind("share of memory above 0", 0.0, 1.0, above=True)
COUNT = Kind("count", 1.0, 1e8, whole=True)
KV_LABELS = WIDE_LABELS | {
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
_RELEASE = re.compile(
    r"v?(?P<release>[0-9]{1,6}(\.[0-9]{1,6}){1,3}([.-]?(a|b|rc|dev|post|alpha|beta)[0-9]{0,9}){0,3}([+-][\w.+-]{1,60})?)"
    r"(\s+[\w.+()-]{1,60}){0,3}",
    re.ASCII,
)
"""A release as packages are numbered, with remarks after it (`0.13 dev`)."""
_BUILD = re.compile(r"(?P<release>b[0-9]{1,9})", re.ASCII)
_OLD_SCHEDULER = re.compile(r"v0\b( engine)?", re.IGNORECASE)
_ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)\s+(?:PR\s*)?#\s*(?P<number>\d{1,7})")


@dataclass(frozen=True, slots=True)
class StartUp:
    """Inputs of one start-up; `defaults` names what the row left blank. No log of `card_gib` prints more than that."""

    case: str
    source: str
    engine: str
    version: str
    arch: Architecture
    arch_class: str
    device: Device
    card_gib: float
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
        self._case = tidy(row.get("case_id", "") or row.get(PLACE, "") or f"row {number}")
        self._defaults: list[str] = []

    def read(self) -> StartUp:
        row = self._row
        refuse_unreadable(row)
        if row.get("model_inferred", "").casefold() in {"yes", "true", "1"}:
            raise NotScored("the model is inferred", scorable=False)
        if not row.get("model", ""):
            raise NotScored("no model is named", scorable=False)
        label = self._label()
        device, card_gib = self._device()
        arch = self._catalog.architecture(label)
        engine, version = self._engine()
        memory = self._catalog.engine(engine, version).memory
        weights = self._weights(arch)
        kv = self._kv(weights)
        layout = self._layout(arch, device, weights)
        check_layout(arch, layout, engine)
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
            card_gib=card_gib,
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
        except UnknownName as error:
            raise NotScored(name_reason("model", named, error), self._memory_known()) from None
        if label.absent:
            raise NotScored(f"model: {label.absent}", label.absent != "names no model" and self._memory_known())
        return label.name

    def _memory_known(self) -> bool:
        return bool(self._stated_gib() or self._known_gpu())

    def _stated_gib(self) -> float | None:
        return number(self._row, "total_gpu_gib", TOTAL)

    def _known_gpu(self) -> str:
        named = self._row.get("gpu", "")
        try:
            return self._catalog.gpu_label(named).gpu if named else ""
        except UnknownName:
            return ""

    def _device(self) -> tuple[Device, float]:
        """Return the device, and the most that its card can hold in GiB: as stated, else the larger of both figures."""
        total = self._stated_gib()
        name = self._known_gpu()
        if not name and total is None:
            raise NotScored(self._no_gpu(), scorable=False)
        if not name:
            assert total is not None
            named = tidy(self._row.get("gpu", "")) or "GPU"
            return Device(named, "", "", total * GIB, 1.0, {"bf16": 1.0}, "pcie", 0.0, 1, 1.0), total
        entry = self._catalog.gpu(name)
        device, label = entry.device(), max(entry.memory.label_gb, entry.memory.usable_gib)
        if total is None:
            return device, label
        if total > label * ROUNDING:
            raise NotScored(f"total_gpu_gib {total:g} is more than the card holds ({label:,.4g} GiB)", scorable=True)
        return replace(device, usable_bytes=total * GIB), total

    def _no_gpu(self) -> str:
        named = self._row.get("gpu", "")
        if not named:
            return "no GPU is named"
        try:
            return f"GPU {tidy(named)}: {self._catalog.gpu_label(named).absent}"
        except UnknownName as error:
            return name_reason("GPU", named, error)

    def _engine(self) -> tuple[str, str]:
        named = self._row.get("engine", "").casefold()
        engine = ENGINE_LABELS.get(named)
        if engine is None:
            raise NotScored(f"engine {tidy(named) or 'not named'}: not modelled", scorable=True)
        stated = self._row.get("engine_version", "")
        if stated:
            return engine, self._stated_version(engine, stated)
        version, why = self._undated(engine)
        self._defaults.append(f"{engine} {version} ({why})")
        return engine, version

    def _stated_version(self, engine: str, stated: str) -> str:
        """Return a version as the catalog compares it. Raises `NotScored` for text that is no release of this engine.

        Engines count releases or builds; words such as `nightly` name none, and constants differ between releases.
        """
        if engine == "vllm" and _OLD_SCHEDULER.fullmatch(stated):
            self._defaults.append(f"{engine} {LAST_OLD_SCHEDULER} (old scheduler)")
            return LAST_OLD_SCHEDULER
        newest = self._catalog.engine_file(engine).newest
        found = (_BUILD if _BUILD.fullmatch(newest) else _RELEASE).fullmatch(stated)
        if found is None:
            raise NotScored(
                f"engine_version {quoted(stated)} is no version of {engine} (as in {newest}); blank where it is not known",
                scorable=True,
            )
        version = found["release"]
        if version_key(version)[: len(version_key(newest))] > version_key(newest):
            self._defaults.append(f"constants of {engine} {newest}, the newest known")
        return version

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
            return (
                arch.native_format
                if found in WIDE_LABELS and arch.native_format in WIDE_LABELS and found != "fp32"
                else found
            )
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
        if gpus is not None and gpus < tensor * pipeline:
            raise NotScored(f"tp {tensor} x pp {pipeline} needs more than n_gpus {gpus}", scorable=True)
        return Layout(tensor=tensor, pipeline=pipeline)

    @staticmethod
    def _least_tensor(arch: Architecture, device: Device, weights: str) -> int:
        """Return the least power of two of GPUs whose memory the weights fit: what a reader of such a report assumes."""
        tensor = 1
        while tensor < MOST_GPUS and weights_bytes(arch, Layout(tensor=tensor), weights) > 0.9 * device.usable_bytes:
            tensor *= 2
        return tensor

    def _fraction(self, memory: EngineMemory) -> float:
        stated = number(self._row, "gpu_memory_utilization", SHARE)
        if stated is None:
            self._defaults.append(f"gpu_memory_utilization {memory.default_fraction:g}")
            return memory.default_fraction
        return stated

    def _filled(self, column: str, default: int) -> int:
        stated = self._whole(column)
        if stated is None:
            self._defaults.append(f"{column} {default}")
            return default
        return stated

    def _whole(self, column: str) -> int | None:
        value = number(self._row, column, COUNT)
        return None if value is None else int(value)


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
