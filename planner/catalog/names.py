"""Names of catalog things: case-insensitive lookup, aliases, and what to say when a name is unknown or not unique."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

MAX_SUGGESTIONS = 3
MAX_CHOICES_SHOWN = 6
SUGGESTION_CUTOFF = 0.6


class UnknownName(LookupError):  # noqa: N818
    """A name that the catalog cannot resolve to one entry.

    `kind` is gpu, model, provider, engine, engine version or calibration. `suggestions` are legal names: near misses,
    or, when `ambiguous`, everything that the name could mean. `reason` says why a known thing is left out. `known` are
    all legal names where they are few.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        suggestions: tuple[str, ...] = (),
        ambiguous: bool = False,
        reason: str = "",
        known: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.suggestions = suggestions
        self.ambiguous = ambiguous
        self.reason = reason
        self.known = known
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.reason:
            return f"{self.kind} `{self.name}` is not modelled: {self.reason}"
        shown = ", ".join(self.suggestions[:MAX_CHOICES_SHOWN])
        more = len(self.suggestions) - MAX_CHOICES_SHOWN
        if self.ambiguous:
            return f"{self.kind} `{self.name}` could mean {shown}" + (f" and {more} more" if more > 0 else "")
        missing = f"no {self.kind} `{self.name}` in the catalog"
        if shown:
            return f"{missing}; did you mean {shown}?"
        return missing + (f"; it has {', '.join(self.known)}" if self.known else "")


def resolve(kind: str, name: str, names: Iterable[str], aliases: Mapping[str, tuple[str, ...]]) -> str:
    """Return the one legal name meant by `name`, ignoring case.

    Tried in this order: the name, an alias, the part of a legal name after its `/`, and the parts of a legal name in
    order (`h100-sxm` for H100-SXM-80GB). Parts must include a digit, so that `llama` alone names nothing.

    Raises:
        UnknownName: nothing matches, or several names do.
    """
    by_folded = {n.casefold(): n for n in sorted(names)}
    folded = name.strip().casefold()
    if folded in by_folded:
        return by_folded[folded]
    meant = aliases.get(folded) or _by_tail(folded, by_folded) or _by_parts(folded, by_folded)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise UnknownName(kind, name, meant, ambiguous=True)
    known = tuple(by_folded.values()) if len(by_folded) <= MAX_CHOICES_SHOWN else ()
    raise UnknownName(kind, name, near_misses(folded, by_folded, aliases), known=known)


def _by_tail(folded: str, by_folded: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(n for f, n in by_folded.items() if f.rpartition("/")[2] == folded)


def _by_parts(folded: str, by_folded: Mapping[str, str]) -> tuple[str, ...]:
    wanted = re.split(r"[-_ ]+", folded)
    if not re.search(r"\d", folded):
        return ()
    return tuple(n for f, n in by_folded.items() if _in_order(wanted, f.rpartition("/")[2].split("-")))


def _in_order(wanted: list[str], parts: list[str]) -> bool:
    rest = iter(parts)
    return all(any(part == w for part in rest) for w in wanted)


def near_misses(folded: str, by_folded: Mapping[str, str], aliases: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Suggest legal names that `folded` begins, then those whose spelling, last part or alias resembles it, each once."""
    meant: dict[str, tuple[str, ...]] = dict(aliases)
    meant |= {f.rpartition("/")[2]: (n,) for f, n in by_folded.items()}
    meant |= {f: (n,) for f, n in by_folded.items()}
    close = difflib.get_close_matches(folded, sorted(meant), MAX_SUGGESTIONS, SUGGESTION_CUTOFF)
    alike = (n for spelling in close for n in meant[spelling])
    return tuple(dict.fromkeys((*_begun(folded, by_folded), *alike)))[:MAX_SUGGESTIONS]


def _begun(folded: str, by_folded: Mapping[str, str]) -> list[str]:
    """Return the names that have the parts of `folded` in order, the last one cut short (`llama-3-8`), shortest first."""
    *whole, cut = re.split(r"[-_ ]+", folded)
    if not whole or not re.search(r"\d", cut):
        return []
    found = (n for f, n in by_folded.items() if _in_order_cut(whole, cut, f.rpartition("/")[2].split("-")))
    return sorted(found, key=len)


def _in_order_cut(whole: list[str], cut: str, parts: list[str]) -> bool:
    rest = iter(parts)
    return all(any(part == w for part in rest) for w in whole) and any(part.startswith(cut) for part in rest)
