"""Which items of two lists are the same: by what they are, by name, then by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAME = "name"


def aligned(
    old: Sequence[Any], new: Sequence[Any], old_labels: Sequence[str], new_labels: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a key for each item of either list: the same for items that are the same, unique in its list.

    Items are the same that are equal, then those of one name, then those at one place among what is left. An old item goes by
    its label, and so does a new one, unless an old one has that label.
    """
    partners: dict[int, int] = {}
    left = list(range(len(new)))
    for is_same in (_are_equal, _are_named_alike):
        for i, item in enumerate(old):
            found = next((j for j in left if i not in partners and is_same(item, new[j])), None)
            if found is not None:
                partners[i] = found
                left.remove(found)
    unnamed = [i for i in range(len(old)) if i not in partners and _name(old[i]) is None]
    for i, j in zip(unnamed, [j for j in left if _name(new[j]) is None], strict=False):
        if len(old) == len(new):
            partners[i] = j
    own = {j: old_labels[i] for i, j in partners.items()}
    taken = set(old_labels)
    keys: list[str] = []
    for j, label in enumerate(new_labels):
        key = own.get(j, label)
        while j not in own and key in taken:
            key = f"{key}'"
        taken.add(key)
        keys.append(key)
    return tuple(old_labels), tuple(keys)


def _are_equal(one: Any, other: Any) -> bool:
    return bool(one == other)


def _are_named_alike(one: Any, other: Any) -> bool:
    return _name(one) is not None and _name(one) == _name(other)


def _name(item: Any) -> Any:
    return item.get(NAME) if isinstance(item, dict) else None
