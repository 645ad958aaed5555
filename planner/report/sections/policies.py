"""The policies: what each allows, what the plan has, who waived it, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from planner.plan.schema import Plan, PolicyResult
from planner.policy.rule import Unit, all_rules
from planner.report import figures
from planner.report.content import Block, Table, keys, texts

EXACT_DIGITS = 12


def policies(plan: Plan) -> Block | None:
    """Return the outcome of every policy."""
    return policy_table("Policies", plan.policies)


def policy_table(title: str, results: tuple[PolicyResult, ...]) -> Table | None:
    """Return the outcomes of policies as a table, None without any."""
    if not results:
        return None
    columns = texts("Policy", "Rule", "Outcome", "Limit", "Actual") + keys("Where")
    notes = tuple(note for result in results for note in _notes(result))
    return Table(title, columns, tuple(_policy(result) for result in results), notes)


def _policy(result: PolicyResult) -> tuple[str, ...]:
    outcome = result.outcome.replace("_", " ")
    limit, actual = limit_and_actual(result)
    return (
        figures.visible(result.id),
        figures.visible(result.rule),
        outcome.upper() if result.outcome == "deny" else outcome,
        limit,
        actual if result.at is None else f"{actual}: {figures.visible(result.at)}",
        figures.visible(result.path if result.file is None else f"{result.file} {result.path}"),
    )


def limit_and_actual(result: PolicyResult) -> tuple[str, str]:
    """Return what a policy allows and what there is, with their unit; with all digits where fewer look the same."""
    limit, actual = (written(result.rule, value) for value in (result.limit, result.actual))
    if limit == actual and result.limit != result.actual:
        return written(result.rule, result.limit, exactly=True), written(result.rule, result.actual, exactly=True)
    return limit, actual


def written(rule: str, value: float | str | None, exactly: bool = False) -> str:
    """Return a limit or an actual value of a rule with the rule's unit; names that are many are cut short."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return figures.listed(figures.visible(value).split(", "))
    known = all_rules().get(rule)
    short, exact = _UNITS[known.unit if known is not None else "words"]
    return exact(value) if exactly else short(value)


def _exact(value: float) -> str:
    return figures.number(value, EXACT_DIGITS)


class _Unit(NamedTuple):
    """How numbers of one unit are written: with the digits that people read, and with all of them."""

    short: Callable[[float], str]
    exact: Callable[[float], str]


_UNITS: Mapping[Unit, _Unit] = {
    "usd": _Unit(figures.usd, lambda value: f"${_exact(value)}"),
    "usd_per_mtok": _Unit(lambda value: f"{figures.usd(value)}/Mtok", lambda value: f"${_exact(value)}/Mtok"),
    "share": _Unit(figures.share, lambda value: f"{_exact(100.0 * value)} %"),
    "days": _Unit(lambda value: f"{figures.number(value)} {'day' if value == 1.0 else 'days'}", _exact),
    "words": _Unit(figures.number, _exact),
}


def _notes(result: PolicyResult) -> Iterator[str]:
    waiver = result.waiver
    if waiver is None or result.outcome in ("ok", "not_evaluated"):
        return
    label, by = figures.visible(result.id), f"{figures.visible(waiver.by)}: {figures.visible(waiver.reason)}"
    until = figures.visible(waiver.until)
    if waiver.expired:
        yield f"{label}: the waiver until {until} has expired. By {by}"
    else:
        yield f"{label}: waived until {until}, that day included, by {by}"
