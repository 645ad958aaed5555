"""A deployment as it is asked for, and the same with names looked up, defaults filled in and impossible things refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from planner.catalog import Catalog
from planner.catalog.engine import EngineProfile
from planner.catalog.gpu import GpuEntry
from planner.physics.formats import KV_FORMATS, WEIGHT_FORMATS, UnknownFormat
from planner.physics.kernels import GGUF_WEIGHTS, WIDE_WEIGHTS, unsupported
from planner.physics.memory import MEDIA_ITEMS, Extras, FractionOf, Lora, draft_extras, lora_bytes
from planner.physics.types import Architecture, Device, Layout

DEFAULT_ENGINE = "vllm"
DEFAULT_MAX_MODEL_LEN = 32768
DEFAULT_BATCHED_TOKENS = 8192
DEFAULT_INPUT_TOKENS = 1024
DEFAULT_OUTPUT_TOKENS = 256
DEFAULT_CONFIDENCE = 0.8
NODE_GPUS = 8
"""GPUs of one server, over which a replica is spread; a wider scale-up domain counts as one node."""
MOST_GROUPS = 1024


class DeploymentError(ValueError):
    """A flag that cannot be followed, with what can be written instead."""

    def __init__(self, flag: str, message: str) -> None:
        self.flag = flag
        super().__init__(f"{flag}: {message}")


@dataclass(frozen=True, slots=True)
class Request:
    """What a deployment is asked to be; None stands for a default. Lengths are tokens, `utilization` a share of one."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    attention_data: int = 1
    decode_context: int = 1
    weights: str | None = None
    kv: str | None = None
    engine: str = DEFAULT_ENGINE
    engine_version: str | None = None
    utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    chunked_prefill: bool | None = None
    block_size: int | None = None
    images: int | None = None
    videos: int | None = None
    lora: Lora | None = None
    draft: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Deployment:
    """One replica of a model on a GPU type, with every setting decided.

    `asked` is what was asked for: what is None there was filled in. `chunked_prefill` None follows the engine, which
    may depend on `max_model_len`. `stated_slots` are the sequences that must have room at once: more than one only
    where an engine sets the cache of every slot aside at start-up.
    """

    model: str
    architecture: Architecture
    entry: GpuEntry
    device: Device
    engine: EngineProfile
    layout: Layout
    weights: str
    kv: str
    utilization: float
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    chunked_prefill: bool | None
    images: int
    videos: int
    lora: Lora | None
    draft: Architecture | None
    input_tokens: int
    output_tokens: int
    stated_slots: int
    asked: Request

    @property
    def chunks(self) -> bool:
        """Tell whether prompts are split over several steps."""
        if self.chunked_prefill is None:
            return self.engine.memory.chunks_prompts(self.max_model_len)
        return self.chunked_prefill

    @property
    def states_batched_tokens(self) -> bool:
        """Tell whether the tokens of a step are stated, and not the default that an engine raises by itself."""
        default = default_batched_tokens(self.engine, self.device, self.architecture)
        return self.asked.max_num_batched_tokens is not None or self.max_num_batched_tokens != default

    @property
    def tokens(self) -> int:
        """Tokens of one request, input and output."""
        return self.input_tokens + self.output_tokens

    @cached_property
    def lora_bytes(self) -> float:
        """Bytes of all adapter slots on one GPU. Raises `UnknownArchitecture`."""
        return lora_bytes(self.architecture, self.layout, self.lora) if self.lora else 0.0

    @cached_property
    def draft_extras(self) -> Extras:
        """What the draft model holds on one GPU, in its native format. Raises `UnknownArchitecture`."""
        if self.draft is None:
            return Extras()
        return draft_extras(self.draft, self.layout, self.draft.native_format, self.kv)

    @property
    def extras(self) -> Extras:
        """Adapters and draft model together."""
        draft = self.draft_extras
        return Extras(draft.weights_bytes + self.lora_bytes, draft.kv_bytes_per_token)

    def changed(self, **settings: object) -> Deployment:
        """Return the deployment with some settings changed; a layout is spread over nodes anew."""
        layout = settings.get("layout")
        if isinstance(layout, Layout):
            settings["layout"] = over_nodes(layout, self.device)
        return replace(self, **settings)  # type: ignore[arg-type]


def deploy(
    asked: Request, catalog: Catalog, model: str | Architecture, gpu: str, draft: Architecture | None = None
) -> Deployment:
    """Look up names, fill in defaults and check every flag against model, engine and GPU.

    `model` is a catalog name, or the shape of a model that is in no catalog. Raises `DeploymentError` for flags,
    `UnknownName` and `UnknownFormat` for names.
    """
    arch = catalog.architecture(model) if isinstance(model, str) else model
    entry = catalog.gpu(gpu)
    device = entry.device()
    engine = _with_block(catalog.engine(asked.engine, asked.engine_version), asked.block_size)
    if not engine.supports(device.vendor):
        legal = ", ".join(sorted(engine.speed_class_by_vendor))
        raise DeploymentError("--engine", f"{engine.name} does not run on {device.vendor} GPUs; it runs on {legal}")
    if asked.utilization is not None and engine.memory.fraction_of is FractionOf.NONE:
        raise DeploymentError("--gpu-memory-utilization", f"{engine.name} has no memory fraction; leave it out")
    if draft is None and asked.draft is not None:
        draft = catalog.architecture(asked.draft)
    layout = over_nodes(_layout(asked, arch, engine), device)
    weights, kv = _formats(asked, arch, engine, device)
    longest, lengths = _lengths(asked, arch)
    batched = asked.max_num_batched_tokens or default_batched_tokens(engine, device, arch)
    deployment = Deployment(
        model=arch.name,
        architecture=arch,
        entry=entry,
        device=device,
        engine=engine,
        layout=layout,
        weights=weights,
        kv=kv,
        utilization=engine.memory.default_fraction if asked.utilization is None else asked.utilization,
        max_model_len=longest,
        max_num_seqs=asked.max_num_seqs or capped_max_num_seqs(engine, device, batched),
        max_num_batched_tokens=batched,
        chunked_prefill=asked.chunked_prefill,
        images=_media("--images", asked.images, arch),
        videos=_media("--videos", asked.videos, arch),
        lora=asked.lora,
        draft=draft,
        input_tokens=lengths[0],
        output_tokens=lengths[1],
        stated_slots=(asked.max_num_seqs or 1) if engine.name == "llama.cpp" else 1,
        asked=asked,
    )
    refused = refusal(deployment)
    if refused is not None:
        raise refused
    return deployment


def refusal(deployment: Deployment) -> DeploymentError | None:
    """Return why the engine would not start with these settings, and what to write; None where nothing is known.

    vLLM refuses steps of fewer tokens than sequences, and where prompts are whole steps, of fewer than a longest one.
    """
    d = deployment
    steps, sequences, longest = d.max_num_batched_tokens, d.max_num_seqs, d.max_model_len
    if d.engine.name != DEFAULT_ENGINE:
        return None
    if steps < sequences:
        return DeploymentError(
            "--max-num-seqs",
            f"{DEFAULT_ENGINE} refuses {sequences:,} sequences with steps of {steps:,} tokens: every sequence needs a token"
            f" of a step; write --max-num-seqs {steps} or less, or --max-num-batched-tokens {sequences} or more",
        )
    if d.states_batched_tokens and not d.chunks and steps < longest:
        return DeploymentError(
            "--max-num-batched-tokens",
            f"{DEFAULT_ENGINE} refuses steps of {steps:,} tokens for unsplit prompts of up to {longest:,}; write"
            f" --chunked-prefill, --max-num-batched-tokens {longest} or more, or --max-model-len {steps} or less",
        )
    return None


def default_max_num_seqs(engine: EngineProfile, device: Device) -> int:
    """Return the batch cap that an engine starts with; one of a single stream is told to serve as many as it can."""
    default = engine.memory.max_num_seqs_on(device)
    return default if default > 1 else engine.max_num_seqs


def capped_max_num_seqs(engine: EngineProfile, device: Device, batched_tokens: int) -> int:
    """Return the default batch cap, for vLLM no more than a step has tokens: it starts with no other."""
    default = default_max_num_seqs(engine, device)
    return min(default, batched_tokens) if engine.name == DEFAULT_ENGINE else default


def default_batched_tokens(engine: EngineProfile, device: Device, arch: Architecture) -> int:
    """Return the token budget of a step: the planner's default, an engine's own where chunking depends on the length."""
    if engine.memory.chunked_from_tokens:
        return engine.memory.batched_tokens_on(device, arch)
    return DEFAULT_BATCHED_TOKENS


def on_gpu(deployment: Deployment, entry: GpuEntry) -> Deployment:
    """Return the deployment on another GPU; a batch cap that was the engine's default follows the GPU."""
    device = entry.device()
    d = replace(deployment, entry=entry, device=device, layout=over_nodes(deployment.layout, device))
    before = capped_max_num_seqs(d.engine, deployment.device, d.max_num_batched_tokens)
    if d.max_num_seqs == before and d.asked.max_num_seqs is None:
        return replace(d, max_num_seqs=capped_max_num_seqs(d.engine, device, d.max_num_batched_tokens))
    return d


def over_nodes(layout: Layout, device: Device) -> Layout:
    """Return the layout spread over as few nodes as hold it."""
    node = max(NODE_GPUS, device.scale_up_gpus)
    return replace(layout, node_gpus=min(layout.gpus, node))


def legal_tensor_degrees(arch: Architecture) -> list[int]:
    """Return the tensor-parallel degrees that divide the query heads."""
    return [degree for degree in range(1, arch.n_heads + 1) if arch.n_heads % degree == 0]


def legal_decode_context(arch: Architecture, tensor: int) -> list[int]:
    """Return the decode context degrees: they share out what tensor ranks would hold as copies."""
    copies = tensor if arch.is_mla else max(1, tensor // max(arch.n_kv_heads, 1))
    return [degree for degree in range(1, copies + 1) if copies % degree == 0]


def legal_weights(engine: str, kv: str, device: Device) -> tuple[str, ...]:
    """Return the weight formats that an engine can serve on a device."""
    return tuple(name for name in WEIGHT_FORMATS if unsupported(engine, name, kv, device) is None)


def _with_block(engine: EngineProfile, block: int | None) -> EngineProfile:
    if block is None:
        return engine
    return replace(engine, memory=replace(engine.memory, block_size_tokens=block))


def _layout(asked: Request, arch: Architecture, engine: EngineProfile) -> Layout:
    degrees = legal_tensor_degrees(arch)
    if asked.tensor not in degrees:
        problem = f"{asked.tensor} does not divide the {arch.n_heads} query heads of {arch.name}"
        raise DeploymentError("--tp", f"{problem}; legal: {_some(degrees)}")
    if asked.pipeline > arch.n_layers:
        raise DeploymentError(
            "--pp", f"{asked.pipeline:,} stages are more than the {arch.n_layers} layers; legal: 1 to {arch.n_layers}"
        )
    if asked.attention_data > 1 and not arch.is_moe:
        raise DeploymentError(
            "--dp", "attention data parallelism is for mixture-of-experts models; run replicas instead (legal: 1)"
        )
    if asked.attention_data > MOST_GROUPS:
        raise DeploymentError("--dp", f"{asked.attention_data:,} is too many; legal: 1 to {MOST_GROUPS:,}")
    stage = asked.tensor * asked.attention_data
    if asked.expert != 1 and not arch.is_moe:
        raise DeploymentError("--ep", f"{arch.name} has no experts; legal: 1")
    if asked.expert not in (1, stage):
        raise DeploymentError(
            "--ep",
            f"expert parallelism covers all {stage} GPUs of a stage (tp x dp) or none; legal: {_some(sorted({1, stage}))}",
        )
    if asked.expert > 1 and stage > arch.n_experts:
        raise DeploymentError("--ep", f"{stage} GPUs of a stage are more than the {arch.n_experts} experts; legal: 1")
    contexts = legal_decode_context(arch, asked.tensor)
    if asked.decode_context not in contexts:
        why = "ranks that hold copies of the cache share it"
        raise DeploymentError(
            "--dcp", f"{asked.decode_context} does not go with --tp {asked.tensor}: {why}; legal: {_some(contexts)}"
        )
    if asked.decode_context > 1 and engine.name != DEFAULT_ENGINE:
        raise DeploymentError("--dcp", f"decode context parallelism is known of {DEFAULT_ENGINE} only; legal: 1")
    return Layout(asked.tensor, asked.pipeline, asked.expert, asked.attention_data, decode_context=asked.decode_context)


def _formats(asked: Request, arch: Architecture, engine: EngineProfile, device: Device) -> tuple[str, str]:
    weights = asked.weights or arch.native_format
    if weights not in WEIGHT_FORMATS:
        raise UnknownFormat(weights, tuple(WEIGHT_FORMATS))
    kv = asked.kv or ("fp16" if weights == "fp16" else "bf16")
    if kv not in KV_FORMATS:
        raise UnknownFormat(kv, tuple(KV_FORMATS))
    problem = unsupported(engine.name, weights, kv, device)
    if problem is None:
        return weights, kv
    is_cache = unsupported(engine.name, weights, "bf16", device) is None
    if is_cache:
        legal: list[str] = [name for name in KV_FORMATS if unsupported(engine.name, weights, name, device) is None]
    elif engine.name == "llama.cpp":
        legal = sorted(GGUF_WEIGHTS | WIDE_WEIGHTS)
    else:
        legal = [name for name in WEIGHT_FORMATS if name not in GGUF_WEIGHTS]
    raise DeploymentError("--kv" if is_cache else "--weights", f"{problem}; legal: {', '.join(legal)}")


def _lengths(asked: Request, arch: Architecture) -> tuple[int, tuple[int, int]]:
    """Return the longest sequence, and input and output tokens. Stated lengths lengthen the default longest sequence."""
    own = arch.max_position
    stated = asked.max_model_len
    if stated is not None and stated > own:
        raise DeploymentError(
            "--max-model-len", f"{stated:,} is longer than the {own:,} tokens of {arch.name}; legal: 1 to {own}"
        )
    longest = stated or min(DEFAULT_MAX_MODEL_LEN, own)
    given = (asked.input_tokens, asked.output_tokens)
    if given == (None, None):
        output = max(1, min(DEFAULT_OUTPUT_TOKENS, longest // 4))
        return longest, (max(1, min(DEFAULT_INPUT_TOKENS, longest - output)), output)
    tokens = (asked.input_tokens or DEFAULT_INPUT_TOKENS, asked.output_tokens or DEFAULT_OUTPUT_TOKENS)
    limit = longest if stated is not None else own
    if sum(tokens) > limit:
        of = "--max-model-len" if stated is not None else arch.name
        flag = "--input" if tokens[0] >= tokens[1] else "--output"
        problem = f"{tokens[0]:,} input and {tokens[1]:,} output tokens are more than the {limit:,} of {of}"
        raise DeploymentError(flag, f"{problem}; both together: 2 to {limit}")
    return max(longest, sum(tokens)), tokens


def _media(flag: str, stated: int | None, arch: Architecture) -> int:
    if stated and not arch.vision_patches:
        raise DeploymentError(flag, f"{arch.name} reads text only; leave it out")
    return MEDIA_ITEMS // 2 if stated is None else stated


def _some(degrees: list[int]) -> str:
    shown = [str(degree) for degree in degrees[:12]]
    return ", ".join(shown) + (", ..." if len(degrees) > len(shown) else "")
