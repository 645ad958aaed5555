"""Plans inside HTML reports: how one is put into a page, and found there again."""

from __future__ import annotations

import re

ELEMENT_ID = "plan"
MEDIA_TYPE = "application/json"
START_TAG = f'<script type="{MEDIA_TYPE}" id="{ELEMENT_ID}">'
"""Tag before the plan of a page. Nothing else in a page has it: what users wrote has no markup there."""
_END = b"</script"
_ESCAPED = re.compile(r"[<>&]|[^\x00-\x7f]")


def script_text(json_text: str) -> str:
    """Return JSON that means the same and stays inside a script element: no markup in it, ASCII alone."""
    return _ESCAPED.sub(_escape, json_text)


def plans_in(page: bytes) -> list[str]:
    """Return the JSON text of every plan in a page: one in a report of this program.

    A page may be anything: it is searched for the very tag, and not parsed, which takes time in proportion to its size.
    """
    after = page.split(START_TAG.encode())[1:]
    return [text.partition(_END)[0].decode("utf-8", errors="replace") for text in after]


def _escape(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it, in two halves beyond the first plane."""
    units = match[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
