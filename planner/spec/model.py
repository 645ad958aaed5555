"""Models to serve: which LLM, in which formats, on which engine and with which parallelism."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from planner.spec.fields import (
    Bool,
    Degrees,
    Increase,
    KvFormats,
    Line,
    Lines,
    PositiveCount,
    PositiveShare,
    Share,
    WeightFormat,
    WeightFormats,
    WholeTokens,
    some,
)
from planner.spec.readers import OneOf, Quantity, Text
from planner.spec.refuse import mistake
from planner.spec.reliability import ReliabilitySpec
from planner.spec.section import Section
from planner.spec.selector import Selector
from planner.spec.vocabulary import ENGINES

_VERSION = r"[0-9]+(\.[0-9]+)*([a-z0-9.+-]*)"
_CONFIG = r"(?!/)(?!(.*/)?\.\.(/|$))[^\\:]+\.json"
_BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
Recovery = Annotated[
    float, Quantity("ratio", above=0.0, maximum=1.2, bounds="above 0 % and at most 120 % of the native format")
]


def _check_block(tokens: int) -> int:
    if tokens not in _BLOCK_SIZES:
        raise mistake("spec/out-of-range", f"`{tokens}` is no block size", "use a power of two from 1 to 256")
    return tokens


class EngineSpec(Section):
    """The serving engine and its settings, in the engine's own words."""

    name: Annotated[str, OneOf("engine", ENGINES)] = "vllm"
    """Engine that serves the model."""
    version: Annotated[str, Text(_VERSION, 'a release, such as `"0.33"`')] = "0.33"
    """Release of the engine, in quotes: `"0.20"` is not the number 0.2."""
    gpu_memory_utilization: PositiveShare = 0.90
    """Share of the GPU memory that the engine may use."""
    max_num_batched_tokens: WholeTokens = 8192
    """Most tokens in one step."""
    max_num_seqs: PositiveCount | None = None
    """Most sequences in one step; default: the planner chooses."""
    chunked_prefill: Bool = True
    """Whether prompts are split over several steps."""
    prefix_caching: Bool = True
    """Whether prompts with a common start share cached keys and values."""
    block_size: Annotated[PositiveCount, AfterValidator(_check_block)] = 16
    """Tokens per block of the KV cache."""


class ParallelismSpec(Section):
    """Degrees of parallelism that the planner may pick from; default: all that are legal."""

    tensor: Degrees | None = None
    """Tensor-parallel degrees."""
    pipeline: Degrees | None = None
    """Pipeline-parallel degrees."""
    expert: Degrees | None = None
    """Expert-parallel degrees."""
    attention_data: Degrees | None = None
    """Data-parallel degrees of the attention layers."""


class PreferSpec(Section):
    """GPU types that are wanted more than others, and what they may cost more."""

    gpus: Annotated[Lines, AfterValidator(some("GPU"))]
    """GPU names of the catalog."""
    penalty: Increase = 0.05
    """Share of its price by which a replica on any other GPU counts dearer; nothing is paid for it."""


class ModelSpec(Section):
    """One LLM to serve, and how the planner may serve it."""

    use: Line | None = None
    """Model name of the catalog; a short alias works, case does not matter."""
    config: (
        Annotated[str, Text(_CONFIG, "a .json file below the folder of the spec, as `models/own/config.json`")] | None
    ) = None
    """Path of a Hugging Face config.json below the folder of the spec, instead of `use`."""
    weights: WeightFormats | None = None
    """Weight formats to pick from; default: the native one, with fp8, int8 and int4 where that has 16 bits."""
    kv_cache: KvFormats | None = None
    """KV formats to pick from; default: bf16 and fp8."""
    min_quality: Share = 0.99
    """Least recovery of weights times KV against the native format."""
    quality: dict[WeightFormat, Recovery] = Field(default_factory=dict)
    """Own evaluations by weight format, as a share of the native format's score; they win over the catalog."""
    quality_evidence: Annotated[
        Literal["model", "family", "any"], OneOf("level of evidence", ("model", "family", "any"))
    ] = "any"
    """Published scores to accept: of this model, of its family, or the format's mean over models."""
    max_model_len: WholeTokens | None = None
    """Longest sequence in tokens, input and output together; default: 32768, or the model's own if less."""
    engine: EngineSpec = EngineSpec()
    """Serving engine and its settings."""
    parallelism: ParallelismSpec = ParallelismSpec()
    """Degrees of parallelism to pick from."""
    max_shapes: PositiveCount = 2
    """Most different shapes of this model in the fleet, in each period by itself."""
    uniform_format: Bool = True
    """Whether all replicas use one weight format and one KV format, in each period by itself."""
    allow: Selector = Selector()
    """Only use offers that match."""
    deny: Selector = Selector()
    """Never use offers that match all of these lists."""
    prefer: PreferSpec | None = None
    """GPU types to use unless others are cheaper by more than a penalty."""
    reliability: ReliabilitySpec | None = None
    """Overrides the top-level reliability, key by key."""
    checkpoints: dict[str, Line] = Field(default_factory=dict)
    """Checkpoint repository by weight format, for exports."""
