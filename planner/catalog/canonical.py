"""What a model name means beyond its spelling: builds, quantised copies and fine-tunes of a model that is in the catalog.

Only for measurements and start-up logs, where a name is all there is. A spec must name a model exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[-_\s/:]+")
_BUILD = re.compile(r"quantized\.w\d+a\d+|w\d+a\d+(kv\d+)?|q\d(_[0-9k]+)*(_[sml])?|\b\d[-_ ]?bits?\b", re.IGNORECASE)
_DATE = re.compile(r"(20)?\d{4,6}")
_SIZE = re.compile(r"(\d+x)?\d+(\.\d+)?[bmt]|e\d+b")
_NOISE = frozenset(
    [
        "meta",
        "instruct",
        "instruction",
        "it",
        "chat",
        "hf",
        "base",
        "gguf",
        "awq",
        "gptq",
        "fp8",
        "fp4",
        "fp16",
        "bf16",
        "nvfp4",
        "mxfp4",
        "nf4",
        "int4",
        "int8",
        "bnb",
        "quantized",
        "quant",
        "dynamic",
        "static",
        "block",
        "pertensor",
        "torch",
        "ao",
        "turbo",
        "autoround",
        "marlin",
        "preview",
        "text",
        "model",
        "weights",
        "awq4bit",
        "thinking",
        "reasoning",
        "dq",
        "modelopt",
        "qat",
        "unsloth",
        "mlx",
        "ct2",
        "exl2",
        "channel",
        "tensor",
        "per",
    ]
)
Tokens = tuple[str, ...]


def tokens(name: str) -> Tokens:
    """Return the parts of a name that tell the shape of the model, in lower case and in order."""
    tail = name.strip().lower().rpartition("/")[2]
    parts = _SEPARATORS.split(_BUILD.sub("", tail))
    kept = [p.strip(".()") for p in parts]
    return tuple(p for p in kept if p and p not in _NOISE and not (_DATE.fullmatch(p) and len(p) >= 4))


def same_model(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that `name` is another build of, None when there is none.

    Builds have the same telling parts. A name whose parts contain those of a sized model in a row is a fine-tune of it
    (`Hermes-3-Llama-3.1-8B`); the longest such model wins.
    """
    wanted = tokens(name)
    if not wanted:
        return None
    known = {n: tokens(n) for n in sorted(names, key=lambda n: (len(n), n))}
    equal = next((n for n, parts in known.items() if parts == wanted), None)
    if equal is not None:
        return equal
    inside = [
        (len(parts), n)
        for n, parts in known.items()
        if _has_size(parts) and len(parts) > 1 and _contains(wanted, parts)
    ]
    return max(inside, key=lambda found: (found[0], -len(found[1])))[1] if inside else None


def tidy(name: str) -> str:
    """Return a name from outside for a message: on one line, printable, and not too long."""
    return re.sub(r"[^ -~]", "?", name)[:80]


def _has_size(parts: Tokens) -> bool:
    return any(_SIZE.fullmatch(part) for part in parts)


def _contains(whole: Tokens, part: Tokens) -> bool:
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))
