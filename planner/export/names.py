"""Names that Kubernetes takes (DNS-1123, and starting with a letter), from names that users chose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

LONGEST = 40
"""Longest name: platforms append to it for pods, and labels end at 63 characters."""
SERVICE_ENDING = "-http"
"""What the name of a Service ends in where the plain name is taken; no other name ends so."""
_HASH_DIGITS = 8


def dns_name(text: str, longest: int = LONGEST) -> str:
    """Return a name in lower-case letters, digits and dashes. One that had to be changed ends in a hash of the original."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    named = slug if slug[:1].isalpha() else f"n-{slug}".rstrip("-")
    return named if named == text and len(named) <= longest else _with_hash(named, text, longest)


def unique_names(texts: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Return a name for each text; equal texts are told apart by their place in the list.

    None is another one with `SERVICE_ENDING`.
    """
    names = [dns_name(text, longest) for text in texts]
    count = Counter(names)
    return [
        name
        if count[name] == 1 and not name.endswith(SERVICE_ENDING)
        else _with_hash(name, f"{number} {text}", longest)
        for number, (name, text) in enumerate(zip(names, texts, strict=True))
    ]


def _with_hash(name: str, text: str, longest: int) -> str:
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{name[: longest - _HASH_DIGITS - 1].rstrip('-')}-{digest}"
