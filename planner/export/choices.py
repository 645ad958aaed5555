"""What the user says about an export that the plan does not know: images, checkpoints, and which pools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII)
_MOST_LETTERS = 512


def is_image(text: str) -> bool:
    """Tell whether a text names a container image: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`, by the grammar of registries.

    Source: github.com/distribution/reference, `reference.go`.
    """
    return len(text) <= _MOST_LETTERS and _IMAGE.fullmatch(text) is not None


@dataclass(frozen=True)
class Choices:
    """Images and checkpoints by pool, the image of all other pools, and the pools to export (all where there are none)."""

    image: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    pools: frozenset[str] = frozenset()

    def image_of(self, pool: str) -> str | None:
        """Return the image that was given for a pool, None where none was."""
        return self.images.get(pool, self.image)
