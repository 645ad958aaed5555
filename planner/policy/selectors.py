"""What a selector of a policy matches in a plan, and whether one selector covers another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.candidates.selection import matches
from planner.plan.schema import Pool
from planner.policy.facts import Bought, PlanFacts
from planner.spec.policies import PolicySelector
from planner.spec.selector import Selector
from planner.spec.supply import OWNED

_WILD = "*?["


def lists_of(selector: Selector) -> Mapping[str, Sequence[str]]:
    """Return the lists of a selector by key, in the order of the keys; those that match anything are left out."""
    lists: dict[str, Sequence[str]] = {
        "countries": selector.all_countries,
        "gpus": selector.gpus,
        "providers": selector.all_providers,
        "regions": selector.all_regions,
        "terms": selector.terms,
    }
    if isinstance(selector, PolicySelector):
        lists |= {"weights": selector.weights, "kv_cache": selector.kv_cache}
    return {key: values for key, values in lists.items() if values}


def in_words(selector: Selector) -> str:
    """Return a selector on one line, such as `countries: DE|FR, gpus: L4`; everything is `all`."""
    return ", ".join(f"{key}: {'|'.join(values)}" for key, values in lists_of(selector).items()) or "all"


def matching(selector: PolicySelector, facts: PlanFacts) -> Iterator[str]:
    """Yield the offers that are paid for and match, or, where formats are named, the pools that match."""
    nodes = [n for n in facts.bought if matches(selector, n, facts.catalog)]
    if not selector.names_formats:
        yield from (n.offer for n in nodes)
        return
    for pool in facts.plan.pools:
        if has_formats(selector, pool) and (not selector.names_nodes or any(_may_lie_on(pool, n) for n in nodes)):
            yield _pool(pool)


def failing(selector: PolicySelector, facts: PlanFacts) -> Iterator[str]:
    """Yield the offers that are paid for and do not match, then the pools whose formats do not.

    Owned nodes are not bought, so that no term of purchase is asked of them.
    """
    of_owned = selector.model_copy(update={"terms": ()})
    for node in facts.bought:
        if not matches(of_owned if node.provider == OWNED else selector, node, facts.catalog):
            yield node.offer
    for pool in facts.plan.pools:
        if not has_formats(selector, pool):
            yield _pool(pool)


def has_formats(selector: PolicySelector, pool: Pool) -> bool:
    """Tell whether the formats of a pool are among those of a selector."""
    return (not selector.weights or pool.weights in selector.weights) and (
        not selector.kv_cache or pool.kv_cache in selector.kv_cache
    )


def _pool(pool: Pool) -> str:
    return f"{pool.name} ({pool.weights} with {pool.kv_cache} KV)"


def _may_lie_on(pool: Pool, node: Bought) -> bool:
    """Tell whether replicas of a pool lie on nodes of this GPU at this place; a plan does not say under which term."""
    places = {(p.provider, p.region) for p in pool.placement}
    return pool.gpu == node.gpu and (node.provider, node.region) in places


def covers(wide: Selector, narrow: Selector) -> bool:
    """Tell whether all that one selector matches is surely matched by the other too."""
    narrow_lists = lists_of(narrow)
    return all(
        key in narrow_lists and all(any(_includes(w, n) for w in values) for n in narrow_lists[key])
        for key, values in lists_of(wide).items()
    )


def _includes(wide: str, narrow: str) -> bool:
    """Tell whether a name or pattern takes in all that another one does; of patterns, only `prefix*` is looked into."""
    wide, narrow = wide.casefold(), narrow.casefold()
    prefix = wide.removesuffix("*")
    ends_open = prefix != wide and not any(sign in prefix for sign in _WILD)
    return wide == narrow or (ends_open and narrow.startswith(prefix))
