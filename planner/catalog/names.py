"""Names of catalog things: case-insensitive lookup, aliases, and what to say when a name is unknown or not unique."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

MAX_SUGGESTIONS = 3
SUGGESTION_CUTOFF = 0.55


class UnknownName(LookupError):
    """A name that the catalog cannot resolve to one entry.

    `kind` is gpu, model, provider, region or engine. `suggestions` are legal names: near misses, or, when `ambiguous`,
    everything that the name could mean. `reason` says why a known thing is left out of the catalog, else it is empty.
    """

    def __init__(
        self, kind: str, name: str, suggestions: tuple[str, ...] = (), ambiguous: bool = False, reason: str = ""
    ) -> None:
        self.kind = kind
        self.name = name
        self.suggestions = suggestions
        self.ambiguous = ambiguous
        self.reason = reason
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.reason:
            return f"{self.kind} `{self.name}` is not modelled: {self.reason}"
        choices = ", ".join(self.suggestions)
        if self.ambiguous:
            return f"{self.kind} `{self.name}` could mean {choices}"
        hint = f"; did you mean {choices}?" if choices else ""
        return f"no {self.kind} `{self.name}` in the catalog{hint}"


def resolve(kind: str, name: str, names: Iterable[str], aliases: Mapping[str, tuple[str, ...]]) -> str:
    """Return the one legal name meant by `name`, ignoring case and following aliases.

    Raises:
        UnknownName: nothing matches, or an alias stands for several names.
    """
    legal = tuple(names)
    by_folded = {n.casefold(): n for n in legal}
    folded = name.strip().casefold()
    if folded in by_folded:
        return by_folded[folded]
    meant = aliases.get(folded, ())
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise UnknownName(kind, name, meant, ambiguous=True)
    raise UnknownName(kind, name, near_misses(folded, by_folded, aliases))


def near_misses(
    folded: str, by_folded: Mapping[str, str], aliases: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Suggest legal names whose own spelling or alias resembles `folded`, best first, each once."""
    spellings = sorted({*by_folded, *aliases, *(n.rpartition("/")[2] for n in by_folded)})
    by_tail = {n.rpartition("/")[2]: legal for n, legal in sorted(by_folded.items())}
    found: list[str] = []
    for match in difflib.get_close_matches(folded, spellings, MAX_SUGGESTIONS, SUGGESTION_CUTOFF):
        single = by_folded.get(match) or by_tail.get(match)
        found.extend([single] if single else aliases[match])
    return tuple(dict.fromkeys(found))[:MAX_SUGGESTIONS]
