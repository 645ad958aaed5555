"""From a config to a catalog entry: the shape, the parameter count, the formats stored, and what is not counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from planner.catalog.huggingface.families import FAMILIES, NOT_COUNTED, WRAPPERS, Family
from planner.catalog.huggingface.fields import LARGEST_LENGTH, Fields, UnsupportedConfig, shown
from planner.catalog.huggingface.layers import FeedForward, Mixer
from planner.catalog.huggingface.modules import Heads, TextShape, modules_of, small_parameters, text_shape
from planner.catalog.huggingface.quantisation import quantisation_of, stored_shares
from planner.catalog.huggingface.sections import uncounted_parts
from planner.catalog.huggingface.vision import vision_of
from planner.catalog.model import BILLION, Attention, Experts, ModelEntry, ParameterCount, RecurrentState, Vision
from planner.physics.parameters import count_parameters

SHAPE_TOLERANCE = 0.01
LLAMA_3_VOCABULARY = 128256
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def entry_from_config(
    config: Mapping[str, Any], name: str, source: str, read: str, quantisation: Mapping[str, Any] | None = None
) -> ModelEntry:
    """Return the catalog entry of a model from its parsed `config.json`.

    `quantisation` is the parsed `hf_quant_config.json` beside it, for a config that holds none. `name` is the name in the catalog, `source` says where the file is from and `read` when. Raises `UnsupportedConfig`
    with everything that is missing or not known; nothing is guessed.
    """
    problems: list[str] = []
    whole = Fields(config, problems)
    text = _language_model(whole)
    kind = text.text("model_type") or whole.text("model_type")
    family = FAMILIES.get(kind)
    if family is None:
        raise UnsupportedConfig([_unknown(kind, whole)])
    problems += [f"`{key}`: {why}" for key, why in NOT_COUNTED.items() if text.raw(key)]
    problems += uncounted_parts(whole, text)
    text = _of_family(text, family)
    shape = text_shape(text, family)
    longest = _longest(text)
    rotary = _rotary_positions(shape, text, longest)
    wide = _DTYPES.get(_dtype(text) or _dtype(whole), "bf16")
    how = quantisation_of(whole, wide, quantisation)
    if how is None:
        problems += [f"`{key}` {stated} is not known" for key, stated in _unknown_dtypes(whole, text)]
    if not shape.layers and not problems:
        problems.append("the config has no layers")
    if problems:
        raise UnsupportedConfig(sorted(set(problems)))
    stored = stored_shares(how, modules_of(shape), wide) if how else {}
    vision = vision_of(whole, shape.width)
    if problems:
        raise UnsupportedConfig(sorted(set(problems)))
    try:
        return _entry(shape, longest, rotary, name, source, read, wide, how.main if how else wide, stored, vision)
    except ValidationError as error:
        wrong = {f"its {'.'.join(map(str, e['loc']))} would be impossible" for e in error.errors(include_url=False)}
        raise UnsupportedConfig(sorted(wrong)) from None


def _of_family(text: Fields, family: Family) -> Fields:
    """Return the fields with the defaults of the family and the section that holds some of them laid open."""
    inner = text.section(family.inner).data if family.inner else {}
    return Fields({**family.defaults, **inner, **text.data}, text.problems, family.keys)


def _language_model(whole: Fields) -> Fields:
    while True:
        inner = [section for section in map(whole.section, WRAPPERS) if section.data]
        if not inner:
            return whole
        whole = inner[0]


def _unknown(kind: str, whole: Fields) -> str:
    classes = ", ".join(str(c) for c in whole.listed("architectures")[:2])
    if not kind:
        return "`model_type` is missing: this does not look like the config of a language model"
    return f"model type `{kind}`{f' ({classes})' if classes else ''} is not known: its layers cannot be counted"


def _longest(text: Fields) -> int:
    """Return the longest sequence in tokens."""
    names = ("max_position_embeddings", "seq_length", "n_positions", "max_seq_len", "model_max_length")
    return text.count(*names, most=LARGEST_LENGTH)


def _dtype(fields: Fields) -> str:
    return (fields.text("torch_dtype") or fields.text("dtype")).removeprefix("torch.")


def _unknown_dtypes(*sections: Fields) -> Iterator[tuple[str, str]]:
    for fields in sections:
        if _dtype(fields) not in {"", "auto", *_DTYPES}:
            yield fields.named("torch_dtype", "dtype"), shown(_dtype(fields))


def _entry(
    shape: TextShape,
    longest: int,
    rotary: int,
    name: str,
    source: str,
    read: str,
    wide: str,
    native: str,
    stored: dict[str, dict[str, float]],
    vision: Vision | None,
) -> ModelEntry:
    total, active = _parameters(shape)
    native = _main_format(shape, stored, native)
    kept: dict[Any, dict[str, float]] = {part: of for part, of in stored.items() if part != "experts" or shape.experts}
    draft = ModelEntry(
        name=name,
        family=_family_name(shape),
        layers=len(shape.layers),
        d_model=shape.width,
        d_ff=shape.ffn_width if any(layer.feed_forward is FeedForward.DENSE for layer in shape.layers) else 0,
        vocab=shape.vocabulary,
        tied_embeddings=shape.tied,
        gated_mlp=shape.family.gated,
        attention=_attention(shape),
        experts=_expert_entry(shape),
        state=_state_entry(shape),
        parameters=ParameterCount(
            total=total, active=min(active, total), published_billions=total / BILLION, published_kind="counted"
        ),
        native_format=native,
        original_format=wide if native != wide and native not in {"mxfp4"} else "",
        stored=kept,
        max_position=longest,
        rotary_positions=rotary,
        vision=vision,
        sources=(source,),
        read=read,
        notes=("Parameters are counted from the config.",),
    )
    return _with_exception(draft)


def _main_format(shape: TextShape, stored: Mapping[str, Mapping[str, float]], native: str) -> str:
    """Name a checkpoint after the format that most of its layers are in; variants of one width share a name."""
    held: dict[str, float] = {}
    for module in modules_of(shape):
        for name, share in stored.get(module.component, {native: 1.0}).items():
            held[name] = held.get(name, 0.0) + share * module.parameters
    main = max(sorted(held), key=held.__getitem__)
    return {"fp8-block": "fp8", "int4-g32": "int4"}.get(main, main)


def _with_exception(entry: ModelEntry) -> ModelEntry:
    """State why the plain count differs, where it does: recurrent layers, gates, layers of several shapes."""
    difference = count_parameters(entry.architecture()) / entry.parameters.total - 1
    if abs(difference) <= SHAPE_TOLERANCE:
        return entry
    reason = f"Layers differ in kind or shape; the plain count of the shape fields is {difference:+.1%} off."
    return entry.model_copy(update={"parameters": entry.parameters.model_copy(update={"shape_exception": reason})})


def _parameters(shape: TextShape) -> tuple[int, int]:
    embeddings = shape.vocabulary * shape.width * (1 if shape.tied else 2)
    modules = list(modules_of(shape))
    total = embeddings + small_parameters(shape) + sum(m.parameters for m in modules)
    experts = sum(m.parameters for m in modules if m.component == "experts")
    share = shape.experts.per_token / shape.experts.count if shape.experts else 1.0
    return total, round(total - experts * (1.0 - min(share, 1.0)))


def _attention(shape: TextShape) -> Attention:
    layers = shape.layers_with(Mixer.FULL, Mixer.LOCAL)
    local = shape.layers_with(Mixer.LOCAL)
    wide, narrow = _elements(shape, shape.global_attention), _elements(shape, shape.attention)
    mixed = 0 < local < layers and wide != narrow
    latent = shape.latent
    return Attention(
        kind=_attention_kind(shape, local),
        heads=shape.attention.heads,
        kv_heads=shape.attention.kv_heads,
        head_dim=latent.nope_dim + latent.rope_dim if latent else shape.attention.head_dim,
        layers=layers,
        kv_elements_per_token=(layers - local) * wide + local * narrow,
        bias=shape.biased != "none",
        qk_norm=shape.qk_norm,
        local_layers=local,
        local_kv_elements=local * narrow if mixed else 0,
        sliding_window=shape.window if local else 0,
        cross_layers=shape.layers_with(Mixer.CROSS),
        pattern=_pattern(shape, layers, local),
        state_layers=shape.layers_with(Mixer.STATE),
        kv_lora_rank=latent.rank if latent else 0,
        q_lora_rank=latent.query_rank if latent else 0,
        qk_rope_head_dim=latent.rope_dim if latent else 0,
        qk_nope_head_dim=latent.nope_dim if latent else 0,
        v_head_dim=latent.value_dim if latent else 0,
    )


def _elements(shape: TextShape, heads: Heads) -> int:
    if shape.latent is not None:
        return shape.latent.rank + shape.latent.rope_dim
    return 2 * heads.kv_heads * heads.head_dim


def _attention_kind(shape: TextShape, local: int) -> str:
    if shape.latent is not None:
        base = "MLA + sparse index" if shape.index_parameters else "MLA"
    elif shape.attention.kv_heads == 1:
        base = "MQA"
    else:
        base = "MHA" if shape.attention.kv_heads == shape.attention.heads else "GQA"
    if shape.state is not None:
        return f"hybrid {shape.state.kind} + {base}"
    if shape.family.name == "llama4" and local:
        return "chunked+global"
    return f"{base} sliding" if local else base


def _pattern(shape: TextShape, layers: int, local: int) -> str:
    parts = [f"{local} local and {layers - local} global layers"] if 0 < local < layers else []
    if shape.state is not None:
        parts.append(f"{shape.layers_with(Mixer.STATE)} recurrent and {layers} attention layers")
    if shape.layers_with(Mixer.CROSS):
        parts.append(f"{shape.layers_with(Mixer.CROSS)} layers attend to the image")
    return "; ".join(parts)


def _expert_entry(shape: TextShape) -> Experts | None:
    sparse = [i for i, layer in enumerate(shape.layers) if layer.feed_forward is FeedForward.EXPERTS]
    if shape.experts is None or not sparse:
        return None
    leading = sparse[0] if sparse == list(range(sparse[0], len(shape.layers))) else 0
    return Experts(
        count=shape.experts.count,
        per_token=min(shape.experts.per_token, shape.experts.count),
        d_ff=shape.experts.width,
        layers=len(sparse),
        shared=shape.experts.shared,
        shared_d_ff=shape.experts.shared_width,
        first_k_dense=leading,
    )


def _state_entry(shape: TextShape) -> RecurrentState | None:
    state = shape.state
    if state is None:
        return None
    width = {2: 2, 4: 4}.get(state.element_bytes, 0)
    return RecurrentState.model_validate(
        {"elements": state.elements, "convolution_elements": state.convolution_elements, "element_bytes": width}
    )


def _rotary_positions(shape: TextShape, text: Fields, longest: int) -> int:
    """Rows of the cosine and sine tables of an engine: one table per base, linear scaling makes it longer."""
    if not shape.family.rotary:
        return 0
    scaling = text.section("rope_scaling")
    kind = scaling.text("rope_type") or scaling.text("type")
    factor = scaling.raw("factor")
    rows = longest
    if kind == "linear" and isinstance(factor, int | float) and 1 <= factor <= 1024:
        rows = int(longest * factor)
    second = text.has("rope_local_base_freq") or isinstance(
        text.section("rope_parameters").raw("sliding_attention"), Mapping
    )
    return rows + longest if second else (rows if rows != longest else 0)


def _family_name(shape: TextShape) -> str:
    family: Family = shape.family
    if family.name == "llama":
        return "llama3" if shape.vocabulary == LLAMA_3_VOCABULARY else "llama2"
    return family.name
