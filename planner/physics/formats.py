"""Number formats of weights and KV cache: how many bytes one parameter or one cached element really takes."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.types import Architecture

COMPONENTS = ("attention", "dense", "experts", "head", "embedding", "small")
"""Parts of a checkpoint that may differ in format; `small` is norms and routers, which stay 16-bit."""

_WHYS = "start-up logs of vLLM 0.19 on H100 (github llm-d-incubation/llm-d-planner PR 205), read 2026-11-29"
_GGUF = "llama.cpp tools/quantize README, Llama-2-7B table of bits per weight, less the head (q6_k) and the embedding"


class UnknownFormat(ValueError):  # noqa: N818
    """A number format that the planner has no bytes for; carries the legal names."""

    def __init__(self, name: str, legal: tuple[str, ...]) -> None:
        self.name = name
        self.legal = legal
        super().__init__(f"unknown format {name!r}; known: {', '.join(legal)}")


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """One weight format. Bytes per parameter include group scales and zeros; `bits` is the nominal width.

    `head` and `embedding` name the formats that the LM head and the input embedding keep beside it. `peak` is the
    device rate its matrix products can use when the hardware has it.
    """

    name: str
    bits: int
    bytes_per_parameter: float
    peak: str
    source: str
    head: str = "bf16"
    embedding: str = "bf16"

    @property
    def quantised(self) -> bool:
        """Tell whether the format is narrower than 16 bits."""
        return self.bits < 16


@dataclass(frozen=True, slots=True)
class KvFormat:
    """One KV cache format. `bytes_per_element` is what engines allocate, `nominal_bytes_per_element` the bare width."""

    name: str
    bytes_per_element: float
    nominal_bytes_per_element: float
    source: str


def _weights(*formats: WeightFormat) -> dict[str, WeightFormat]:
    return {f.name: f for f in formats}


WEIGHT_FORMATS: dict[str, WeightFormat] = _weights(
    WeightFormat("fp32", 32, 4.0, "bf16", "IEEE 754; " + _WHYS, "fp32", "fp32"),
    WeightFormat("bf16", 16, 2.0, "bf16", "bfloat16; " + _WHYS),
    WeightFormat("fp16", 16, 2.0, "bf16", "IEEE 754; " + _WHYS, "fp16", "fp16"),
    WeightFormat("fp8", 8, 1.0, "fp8", "per-tensor or per-channel scales, below 0.1 %; " + _WHYS),
    WeightFormat("fp8-block", 8, 1 + 4 / 128**2, "fp8", "fp32 scale per 128 x 128 block: arXiv 2412.19437 section 3.3"),
    WeightFormat("int8", 8, 1.0, "int8", "per-channel scales, below 0.1 % (W8A8, W8A16)"),
    WeightFormat("int4", 4, (4 + 16 / 128 + 4 / 128) / 8, "bf16", "AWQ, GPTQ: fp16 scale and 4-bit zero per 128"),
    WeightFormat("int4-g32", 4, (4 + 16 / 32) / 8, "bf16", "bf16 scale per 32, symmetric: Kimi-K2 quantization_config"),
    WeightFormat("nvfp4", 4, (4 + 8 / 16) / 8, "fp4", "fp8 scale per 16: NVIDIA NVFP4 definition"),
    WeightFormat("mxfp4", 4, (4 + 8 / 32) / 8, "fp4", "shared 8-bit exponent per 32: OCP Microscaling v1.0"),
    WeightFormat("q8_0", 8, 8.5 / 8, "bf16", _GGUF, "q8_0", "q8_0"),
    WeightFormat("q6_k", 6, 6.5625 / 8, "bf16", _GGUF, "q6_k", "q6_k"),
    WeightFormat("q5_k_m", 5, 5.66 / 8, "bf16", _GGUF, "q6_k", "q5_k"),
    WeightFormat("q5_k", 5, 5.5 / 8, "bf16", _GGUF, "q6_k", "q5_k"),
    WeightFormat("q4_k_m", 4, 4.81 / 8, "bf16", _GGUF, "q6_k", "q4_k"),
    WeightFormat("q5_k_s", 5, 5.5 / 8, "bf16", _GGUF, "q6_k", "q5_k"),
    WeightFormat("q4_k", 4, 4.5 / 8, "bf16", _GGUF, "q6_k", "q4_k"),
    WeightFormat("q4_k_s", 4, 4.54 / 8, "bf16", _GGUF, "q6_k", "q4_k"),
    WeightFormat("q4_0", 4, 4.5 / 8, "bf16", _GGUF, "q6_k", "q4_0"),
    WeightFormat("q3_k_m", 3, 3.87 / 8, "bf16", _GGUF, "q6_k", "q3_k"),
    WeightFormat("q3_k_s", 3, 3.4375 / 8, "bf16", _GGUF, "q6_k", "q3_k"),
    WeightFormat("q3_k", 3, 3.4375 / 8, "bf16", _GGUF, "q6_k", "q3_k"),
    WeightFormat(
        "nf4", 4, (4 + 32 / 64) / 8, "bf16", "bitsandbytes NF4 as loaded: fp32 scale per 64 (arXiv 2305.14314)"
    ),
)
"""Weight formats by the name that a spec or a catalog entry uses."""

KV_FORMATS: dict[str, KvFormat] = {
    f.name: f
    for f in (
        KvFormat("fp32", 4.0, 4.0, "follows the compute dtype; " + _WHYS),
        KvFormat("bf16", 2.0, 2.0, _WHYS),
        KvFormat("fp16", 2.0, 2.0, _WHYS),
        KvFormat("fp8", 1.0, 1.0, "exactly 2.000x the tokens of bf16; " + _WHYS),
        KvFormat("int8", 1.01, 1.0, "one scale per token and head costs 1 % (public start-up logs, 2026-11-29)"),
        KvFormat("int4", 0.5 + 4 / 128, 0.5, "fp16 scale and zero per token and head of 128: lmdeploy KV quantisation"),
        KvFormat("nvfp4", 1 / 1.6, 0.5625, "engines hold 1.600x the tokens of fp8 (public start-up logs, 2026-11-29)"),
    )
}
"""KV cache formats by name."""

_WIDE = frozenset({"bf16", "fp16", "fp32"})


def weight_format(name: str) -> WeightFormat:
    """Find a weight format. Raises `UnknownFormat`."""
    try:
        return WEIGHT_FORMATS[name]
    except KeyError:
        raise UnknownFormat(name, tuple(sorted(WEIGHT_FORMATS))) from None


def kv_format(name: str) -> KvFormat:
    """Find a KV cache format. Raises `UnknownFormat`."""
    try:
        return KV_FORMATS[name]
    except KeyError:
        raise UnknownFormat(name, tuple(sorted(KV_FORMATS))) from None


def component_formats(arch: Architecture, fmt: str) -> dict[str, str]:
    """Map every component of `COMPONENTS` to the format it is stored in when the checkpoint is called `fmt`.

    Head and embedding stay 16-bit unless the format says otherwise, norms and routers always do. Checkpoints that
    quantise only a part: natively 4-bit MoE models (gpt-oss, Kimi) keep all but the routed experts in bf16; 4-bit
    builds of MLA models keep the attention in bf16 and, from an 8-bit original, the dense parts in 8 bits.
    Sources: the `quantization_config` of the models and of published builds (Kimi-K2.5-NVFP4, DeepSeek-R1 in 4 bits).
    A catalog entry that lists what its checkpoint stores (`Architecture.stored`) wins; a component in several formats
    is named after the largest share. Raises `UnknownFormat`.
    """
    chosen = weight_format(fmt)
    wide = fmt if fmt in _WIDE else "bf16"
    body = _native_variant(arch, fmt)
    parts = {"attention": body, "dense": body, "experts": body, "small": wide}
    if chosen.bits == 4 and chosen.embedding == "bf16":
        parts |= _unquantised_parts(arch, fmt)
    shares = _stored_shares(arch, fmt)
    stored = {part: max(sorted(of), key=of.__getitem__) for part, of in shares.items()}
    return parts | {"head": chosen.head, "embedding": chosen.embedding} | stored


def component_bytes(arch: Architecture, fmt: str) -> dict[str, float]:
    """Give bytes per parameter of every component of a checkpoint called `fmt`. Raises `UnknownFormat`."""
    formats = component_formats(arch, fmt)
    sizes = {part: weight_format(name).bytes_per_parameter for part, name in formats.items()}
    for part, shares in _stored_shares(arch, fmt).items():
        sizes[part] = sum(weight_format(name).bytes_per_parameter * share for name, share in sorted(shares.items()))
    return sizes


def _stored_shares(arch: Architecture, fmt: str) -> dict[str, dict[str, float]]:
    shares: dict[str, dict[str, float]] = {}
    for checkpoint, part, name, share in arch.stored:
        if checkpoint == fmt:
            shares.setdefault(part, {})[name] = share
    return shares


def _native_variant(arch: Architecture, fmt: str) -> str:
    if fmt == arch.native_format == "fp8":
        return "fp8-block"
    if fmt == arch.native_format == "int4" and arch.is_moe:
        return "int4-g32"
    return fmt


def _unquantised_parts(arch: Architecture, fmt: str) -> dict[str, str]:
    if arch.is_moe and fmt == arch.native_format:
        return {"attention": "bf16", "dense": "bf16"}
    if arch.is_mla and arch.is_moe:
        return {"attention": "bf16", "dense": "fp8" if arch.native_format == "fp8" else fmt}
    return {}
