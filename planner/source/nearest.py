"""Find the spelling that a user most likely meant."""

from __future__ import annotations

from collections.abc import Iterable

_CUTOFF = 0.6


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice most like `word` (case ignored), or None when nothing is close.

    Closeness is the ratio of `difflib` with its usual cutoff of 0.6; ties go to the first in alphabetical order.
    """
    from difflib import SequenceMatcher

    best, best_ratio = None, _CUTOFF
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word.lower())
    for choice in sorted(choices):
        matcher.set_seq1(choice.lower())
        ratio = matcher.ratio() if matcher.real_quick_ratio() > best_ratio else 0.0
        if ratio > best_ratio:
            best, best_ratio = choice, ratio
    return best
