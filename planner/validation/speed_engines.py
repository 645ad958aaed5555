"""Which line of the speed model's engine table a labelled engine takes, and how it admits requests."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass

LOCAL = "local"
MODERN_SINCE = "2025-06"
"""Logs of vLLM and SGLang without a version count as current from this month on."""
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_NUMBER = re.compile(r"(\d{1,9})\.(\d{1,9})")


@dataclass(frozen=True, slots=True)
class EngineClass:
    """A class of the engine table, whether it reserves the cache of a whole answer, and its batch limits."""

    name: str
    reserving: bool = False
    max_sequences: float = 1024.0
    budget_tokens: float = 8192.0


UNLIMITED = 1e9
_CLASSES = {
    c.name: c
    for c in (
        EngineClass("trt_cpp", True, 2048.0),
        EngineClass("trt_pt", True, 4096.0),
        EngineClass("trt_old", True, 2048.0),
        EngineClass("trt_early_moe", True, 48.0),
        EngineClass("vllm_new"),
        EngineClass("vllm_mlperf"),
        EngineClass("atom"),
        EngineClass("vllm_old", False, 256.0, 2048.0),
        EngineClass("vllm_07", False, 256.0, 2048.0),
        EngineClass("vllm_old_nonnv", False, 256.0, 2048.0),
        EngineClass("vllm_xpu", False, 256.0, 2048.0),
        EngineClass("sglang_old", False, 2048.0, 16384.0),
        EngineClass("sglang_new", False, 2048.0, 16384.0),
        EngineClass("ds_mii", False, 256.0, 2048.0),
        EngineClass("ds_hpu", False, 256.0, 2048.0),
        EngineClass("tgi", False, 256.0, 2048.0),
        EngineClass("llamacpp", True, 1.0, 2048.0),
        EngineClass("exllama", True, 1.0, 2048.0),
    )
}

ENGINES = (
    "vLLM", "SGLang", "TensorRT-LLM", "NIM", "TGI", "DeepSpeed-MII", "ATOM", "llama.cpp", "ExLlamaV2",
)  # fmt: skip
"""Engines that have a class, as people write them."""


def is_date(text: str) -> bool:
    """Tell whether a text is a year, a month or a day, as in `2025-11`."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) if part else 1 for part in found.groups())
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 1, month)[1]


def engine_class(label: str, date: str, vendor: str, is_moe: bool) -> EngineClass | None:
    """Return the class of an engine as measurements name it, None when no class stands for it.

    A version decides where there is one, else the month. Runs without either are of late 2024, when most of the
    published tables without versions were measured.
    """
    folded = label.casefold()
    if "mlperf" in folded or "llmboost" in folded or re.search(r"\.dev\d+\+g71faa1880", folded):
        return _CLASSES["vllm_mlperf"]
    if "atom" in folded:
        return _CLASSES["atom"]
    if "llama-cpp" in folded or "llama.cpp" in folded:
        return _CLASSES["llamacpp"]
    if "exllama" in folded or "mlc" in folded:
        return _CLASSES["exllama"]
    if "deepspeed" in folded:
        return _CLASSES["ds_mii" if "mii" in folded else "ds_hpu"]
    if "tgi" in folded or "text-generation-inference" in folded:
        return _CLASSES["tgi"]
    if "sglang" in folded:
        return _CLASSES["sglang_new" if _is_current(folded, date, (0, 5)) else "sglang_old"]
    if "tensorrt" in folded or folded.startswith("nim"):
        return _CLASSES[_tensorrt(folded, date, is_moe)]
    if "vllm" in folded:
        return _CLASSES[_vllm(folded, date, vendor)]
    return None


def _version(folded: str, name: str) -> tuple[int, int] | None:
    found = _NUMBER.search(folded[folded.find(name) + len(name) :]) if name in folded else None
    return (int(found[1]), int(found[2])) if found else None


def _is_current(folded: str, date: str, since: tuple[int, int]) -> bool:
    found = _NUMBER.search(folded)
    if found:
        return (int(found[1]), int(found[2])) >= since
    return date >= MODERN_SINCE


def _tensorrt(folded: str, date: str, is_moe: bool) -> str:
    if "pytorch" in folded or "dynamo" in folded or "release:1" in folded:
        return "trt_pt"
    if folded.startswith("nim") or re.search(r"tensorrt \d", folded):
        return "trt_cpp"
    version = _version(folded, "llm")
    if version is not None:
        return "trt_pt" if version >= (1, 0) else "trt_cpp"
    if is_moe and "2025" <= date < MODERN_SINCE:
        return "trt_early_moe"
    return "trt_pt" if date >= MODERN_SINCE else "trt_old"


def _vllm(folded: str, date: str, vendor: str) -> str:
    version = _version(folded, "vllm")
    if version is None and date >= MODERN_SINCE:
        return "vllm_new"
    if version is not None and version >= (0, 9):
        return "vllm_new"
    if vendor == "Intel":
        return "vllm_xpu"
    if vendor != "NVIDIA":
        return "vllm_old_nonnv"
    return "vllm_07" if version == (0, 7) else "vllm_old"
