"""Which format every module of a checkpoint is stored in, from its `quantization_config`: the list, not the name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from planner.catalog.huggingface.fields import Fields, shown
from planner.catalog.huggingface.modules import Module

WIDE = "bf16"
_PREFIXES = re.compile(r"^(model\.)?(language_model\.)?(model\.)?(backbone\.)?(transformer\.)?(text_model\.)?")
_MODELOPT = {
    "FP8": "fp8",
    "FP8_PB_WO": "fp8-block",
    "FP8_PB_REAL": "fp8-block",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "INT8_SQ": "int8",
    "MXFP4": "mxfp4",
    "MXFP8": "fp8",
}
MAX_PATTERN = 300
MAX_PATTERNS = 20_000
Matcher = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """Format of a module by its name, `main` for most; `wide` is that of everything that is not quantised."""

    main: str
    format_of: Callable[[str], str]
    head: str


def quantisation_of(fields: Fields, wide: str, beside: Mapping[str, Any] | None = None) -> Quantisation | None:
    """Return how a checkpoint is quantised, None for a plain one. Unknown methods are added to the problems.

    `beside` is the content of `hf_quant_config.json`, where some tools write what the config leaves out.
    """
    inside = fields.section("quantization_config").data
    config = inside or fields.section("text_config").section("quantization_config").data
    if not config and beside is not None:
        config = {"quant_method": "modelopt", **Fields(beside, fields.problems).section("quantization").data}
    if not config:
        return None
    inner = Fields(config, fields.problems)
    method = inner.text("quant_method")
    layers = inner.raw("quantized_layers")
    if isinstance(layers, Mapping):
        return _by_layer(layers, wide, inner)
    main = _main_format(method, inner)
    if main is None:
        return None
    ignored = _any_of([*_ignored(inner), *_always_ignored(method)], inner)
    return Quantisation(
        main,
        lambda name: wide if ignored(name) else main,
        wide if ignored("lm_head") or method not in {"modelopt", "compressed-tensors"} else main,
    )


def stored_shares(quantisation: Quantisation, modules: Iterable[Module], wide: str) -> dict[str, dict[str, float]]:
    """Return, by component, the share of its parameters in each format."""
    counts: dict[str, dict[str, int]] = {}
    for module in modules:
        name = quantisation.format_of(module.name)
        of = counts.setdefault(module.component, {})
        of[name] = of.get(name, 0) + module.parameters
    shares = {
        part: {name: round(count / sum(of.values()), 6) for name, count in sorted(of.items())}
        for part, of in sorted(counts.items())
    }
    return shares | {"head": {quantisation.head: 1.0}, "embedding": {wide: 1.0}, "small": {wide: 1.0}}


def _main_format(method: str, inner: Fields) -> str | None:
    simple = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "bitsandbytes": "nf4"}
    if method == "fp8" and inner.has("weight_block_size"):
        return "fp8-block"
    if method == "bitsandbytes" and inner.flag("load_in_8bit"):
        return "int8"
    if method in simple:
        return simple[method]
    if method in {"awq", "gptq", "auto-round", "autoround"}:
        return _integer(
            inner.count("bits", "w_bit", default=4), inner.count("group_size", default=128, least=-1), inner
        )
    if method == "compressed-tensors":
        return _compressed(inner)
    algorithm = inner.text("quant_algo")
    if algorithm in _MODELOPT:
        return _MODELOPT[algorithm]
    inner.problems.append(
        f"`quantization_config`: method `{algorithm or method}` is not known"
        if algorithm or method
        else "`quantization_config` has no `quant_method`"
    )
    return None


def _compressed(inner: Fields) -> str | None:
    groups = inner.raw("config_groups")
    weights = (
        [g.get("weights") for g in groups.values() if isinstance(g, Mapping)] if isinstance(groups, Mapping) else []
    )
    found = [Fields(w, inner.problems) for w in weights if isinstance(w, Mapping)]
    if not found:
        inner.problems.append("`quantization_config` has no weights in its `config_groups`")
        return None
    first = found[0]
    bits, group = first.count("num_bits"), first.count("group_size", default=0, least=-1)
    if first.text("type") == "float" and bits == 4:
        return "mxfp4" if group == 32 else "nvfp4"
    if first.text("type") == "float" and bits == 8:
        return "fp8-block" if first.text("strategy") == "block" else "fp8"
    return _integer(bits, group or 128, inner)


def _integer(bits: int, group: int, inner: Fields) -> str | None:
    if bits == 8:
        return "int8"
    if bits == 4:
        return "int4-g32" if group == 32 else "int4"
    inner.problems.append(f"`quantization_config`: integer weights of {bits} bits are not known")
    return None


def _by_layer(layers: Mapping[str, Any], wide: str, inner: Fields) -> Quantisation:
    """Mixed precision: every quantised module is listed with its own algorithm."""
    formats: dict[str, str] = {}
    for name, how in layers.items():
        algorithm = how.get("quant_algo") if isinstance(how, Mapping) else None
        if not isinstance(algorithm, str) or algorithm not in _MODELOPT:
            inner.problems.append(f"`quantization_config`: method {shown(algorithm)} is not known")
            continue
        formats[_bare(str(name))] = _MODELOPT[algorithm]
    main = max(sorted(set(formats.values())), key=list(formats.values()).count, default=wide)
    return Quantisation(main, lambda name: _listed_format(name, formats, wide), formats.get("lm_head", wide))


def _listed_format(name: str, formats: Mapping[str, str], wide: str) -> str:
    if name in formats:
        return formats[name]
    # A listed parent covers its modules, and an input projection may be listed in parts.
    parents = [name.rsplit(".", n)[0] for n in range(1, 4)]
    return next((formats[parent] for parent in parents if parent in formats), wide)


def _ignored(inner: Fields) -> list[str]:
    names = ("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules", "llm_int8_skip_modules")
    found = [str(pattern) for name in names for pattern in inner.listed(name)]
    if len(found) > MAX_PATTERNS:
        inner.problems.append(f"more than {MAX_PATTERNS} modules are left out of quantisation")
    return found[:MAX_PATTERNS]


def _always_ignored(method: str) -> tuple[str, ...]:
    return ("re:.*self_attn.*", "re:.*shared_expert.*", "re:.*mlp\\.(gate|up|down)_proj.*") if method == "mxfp4" else ()


def _any_of(patterns: list[str], inner: Fields) -> Matcher:
    """Return a test of a module's bare name against names, globs and `re:` patterns, as engines read them."""
    exact: set[str] = set()
    searched: list[re.Pattern[str]] = []
    for pattern in patterns:
        if len(pattern) > MAX_PATTERN:
            inner.problems.append("a pattern of modules left out of quantisation is too long")
            continue
        try:
            if pattern.startswith("re:"):
                searched.append(re.compile(_safe(pattern[3:])))
            elif "*" in pattern or "?" in pattern:
                searched.append(re.compile(translate(_bare(pattern))))
            else:
                exact.add(_bare(pattern))
        except re.error:
            inner.problems.append("a pattern of modules left out of quantisation is no regular expression")
    return lambda name: _covered(name, exact) or any(p.match(at) for at in _spellings(name) for p in searched)


def _spellings(name: str) -> tuple[str, ...]:
    """The name, its parents, and the name below `model.`: what a pattern may have been written for."""
    parts = name.split(".")
    return (name, f"model.{name}", *(".".join(parts[:n]) for n in range(2, len(parts))))


def _safe(pattern: str) -> str:
    """Refuse nested repetition, which takes exponential time."""
    if re.search(r"[*+}]\)?[*+{]|\([^)]*[*+][^)]*\)[*+{]", pattern):
        raise re.error("nested repetition")
    return pattern


def _covered(name: str, exact: set[str]) -> bool:
    parts = name.split(".")
    prefixes = (".".join(parts[:n]) for n in range(1, len(parts) + 1))
    # `self_attn` or `o_proj` alone name all modules of that kind.
    return any(prefix in exact for prefix in prefixes) or any(part in exact for part in parts if not part.isdigit())


def _bare(name: str) -> str:
    return _PREFIXES.sub("", name.removesuffix(".weight"))
