"""What the user says about an export that the plan does not know: images, checkpoints, and which pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
