"""Find the spelling that a user most likely meant."""

from __future__ import annotations

from collections.abc import Iterable

_CUTOFF = 0.6


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice most like `word` (case ignored), or None when nothing is close.

    Closeness is the ratio of `difflib` with its usual cutoff of 0.6. Ties go to swapped letters (`p59` means `p95`),
    then to the first in alphabetical order.
    """
    from difflib import SequenceMatcher

    best, best_rank = None, (_CUTOFF, False)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word.lower())
    for choice in sorted(choices):
        matcher.set_seq1(choice.lower())
        if matcher.real_quick_ratio() < best_rank[0]:
            continue
        rank = (matcher.ratio(), sorted(choice.lower()) == sorted(word.lower()))
        if rank > best_rank:
            best, best_rank = choice, rank
    return best
