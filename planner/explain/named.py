"""What a user may call a shape or an offer: its name, any beginning of it, a GPU or an entry of the supply alone.

Shapes may have a short GPU name in front.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from planner.candidates.types import CandidateTable, Rejection
from planner.catalog import Catalog, UnknownName

LAYOUT = "-tp"


@dataclass(frozen=True)
class Named:
    """What a name means: shapes or priced `offers`, and `others`, GPU types or offers that were ruled out before these."""

    name: str
    shapes: frozenset[str]
    others: frozenset[str]
    offers: frozenset[str] = frozenset()


class NothingNamed(ValueError):  # noqa: N818
    """A name that means nothing that was considered; the message says what would."""


def named(name: str, table: CandidateTable, catalog: Catalog) -> Named:
    """Return what a name means; a whole name wins over beginnings of others. Raises `NothingNamed`."""
    known = all_shapes(table)
    lost = {lost_name(r) for r in table.rejections if not (r.shape and r.model)}
    wanted = name.casefold()
    others = frozenset(each for each in lost if each.casefold() == wanted)
    whole = [shape for shape in known if shape.casefold() == wanted]
    if whole:
        return Named(whole[0], frozenset(whole), others)
    offers = frozenset(o.name for o in table.supply.offers if _begins(o.name, wanted))
    unpriced = frozenset(each for each in lost if _begins(each, wanted))
    if offers or len(unpriced) > len(others):
        return Named(name if len(offers) != 1 else min(offers), frozenset(), unpriced, offers)
    gpu, mark, rest = wanted.partition(LAYOUT)
    with suppress(UnknownName):  # a name that several GPUs share is the beginning of theirs
        gpu = catalog.gpu(gpu).name
    full = f"{gpu}{mark}{rest}"
    shapes = frozenset(shape for shape in known if f"{shape}-".casefold().startswith(f"{full}-".casefold()))
    others |= frozenset(each for each in lost if each == full)
    if shapes or others:
        return Named(min(shapes) if len(shapes) == 1 else full, shapes, others)
    raise NothingNamed(_unknown(name, gpu if gpu in catalog.gpu_names() else "", table))


def _begins(offer: str, wanted: str) -> bool:
    """Tell whether a name is that of an offer, or of its first parts: entry, region, instance."""
    return f"{offer}/".casefold().startswith(f"{wanted}/")


def lost_name(rejection: Rejection) -> str:
    """Return the name of the offer, entry of the supply, shape or GPU that was ruled out."""
    return rejection.offer or rejection.shape or rejection.gpu


def all_shapes(table: CandidateTable) -> list[str]:
    """Return every shape that was considered, sorted."""
    rated = {c.shape.name for c in table.candidates}
    return sorted(rated | {r.shape for r in table.rejections if r.shape and r.model})


def _unknown(name: str, gpu: str, table: CandidateTable) -> str:
    if gpu and not any(o.gpu == gpu for o in table.supply.offers):
        sold = ", ".join(sorted({o.gpu for o in table.supply.offers}))
        return f"no offer of the spec sells {gpu}; they sell {sold}"
    by_key = {shape.casefold(): shape for shape in all_shapes(table)}
    offers = {part.casefold(): part for o in table.supply.offers for part in (o.entry, o.name)}
    close = get_close_matches(name.casefold(), by_key | offers, n=1)
    example = f"a shape is called as in `{min(by_key.values())}`"
    example += f", an offer as in `{min(offers.values())}`" if offers else ""
    if close:
        example = f"did you mean `{(by_key | offers)[close[0]]}`?"
    return f"no shape or offer `{name}` was considered; {example}"
