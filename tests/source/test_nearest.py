"""Suggestions."""

from __future__ import annotations

import pytest

from planner.source import format_path, nearest


@pytest.mark.parametrize(
    ("word", "choices", "expected"),
    [
        ("tpot_p59", ("tpot_p50", "tpot_p95", "tpot_p99"), "tpot_p95"),
        ("chta", ("chat", "code"), "chat"),
        ("VLLM", ("vllm", "sglang"), "vllm"),
        ("zzz", ("vllm", "sglang"), None),
        ("", ("vllm",), None),
        ("x", (), None),
    ],
)
def test_nearest(word: str, choices: tuple[str, ...], expected: str | None) -> None:
    """Close spellings are found, swapped letters first; nothing is suggested for what is like nothing."""
    assert expected == nearest(word, choices)


def test_paths_read_like_the_file() -> None:
    """Keys are joined by dots, positions in brackets."""
    assert format_path(("supply", "offers", 1, "price")) == "supply.offers[1].price"
