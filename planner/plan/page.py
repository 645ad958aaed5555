"""Plans inside HTML reports: how one is put into a page, and found there again."""

from __future__ import annotations

import re
from html.parser import HTMLParser

ELEMENT_ID = "plan"
MEDIA_TYPE = "application/json"
_ESCAPED = re.compile(r"[<>&]|[^\x00-\x7f]")


def script_text(json_text: str) -> str:
    """Return JSON that means the same and stays inside a script element: no markup in it, ASCII alone."""
    return _ESCAPED.sub(_escape, json_text)


def plans_in(page: bytes) -> list[str]:
    """Return the JSON text of every plan in a page: one in a report of this program."""
    reader = _Reader()
    reader.feed(page.decode("utf-8", errors="replace"))
    reader.close()
    return reader.found


def _escape(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it, in two halves beyond the first plane."""
    units = match[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


class _Reader(HTMLParser):
    """Collects what stands in script elements of the plan's id and media type."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._is_inside = tag == "script" and given.get("id") == ELEMENT_ID and given.get("type") == MEDIA_TYPE
        if self._is_inside:
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._is_inside = False

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.found[-1] += data
