"""HTML reports of stored plans, made once, and a reader that says what is in a page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from stored import TESTS, stored

from planner.candidates.references import open_catalog
from planner.explain.sensitivity import Sensitivity
from planner.pipeline import prepare
from planner.report import html
from planner.report.content import Origin
from planner.report.places import origin_of
from planner.spec import load_spec
from planner.study import study_of

SPEC = TESTS.parent / "specs" / "prod.yaml"
DEARER = Sensitivity("demand of chat +10 %", "workloads.assistant", "12 req/s", "13.2 req/s", 140.0, 6.0, False)
VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})


@cache
def prod_origin() -> Origin:
    """Return the spec of the stored production plan with all that it adds, and a change that was planned anew."""
    loaded = load_spec(SPEC.read_text(encoding="utf-8"), "specs/prod.yaml")
    prepared = prepare(loaded, open_catalog(replace(loaded, path=str(SPEC)), None))
    return replace(origin_of(loaded), study=study_of(prepared, stored("prod"), [DEARER]))


@cache
def prod_page() -> str:
    """Return the report of the stored production plan, with its spec."""
    return html.render(stored("prod"), prod_origin())


class Page(HTMLParser):
    """A page as a list of elements, with the text of each and the ids that it is in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: Counter[str] = Counter()
        self.scripts: list[str] = []
        self.open: list[str] = []
        self._words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._flush()
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._flush()
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._flush()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        else:
            self._words.append(data)

    def values(self, attribute: str) -> list[str]:
        """Return every value of an attribute, in order."""
        return [value for _, given in self.elements if (value := given.get(attribute)) is not None]

    def _flush(self) -> None:
        text = " ".join("".join(self._words).split())
        if text:
            self.texts[text] += 1
        self._words = []


def page_file(folder: Path) -> Path:
    """Write the report of the production plan into a folder."""
    path = folder / "report.html"
    path.write_text(prod_page(), encoding="utf-8", newline="\n")
    return path
