"""Images are named as registries name them."""

from __future__ import annotations

import pytest

from planner.export.choices import is_image

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    "text",
    [
        "vllm",
        "vllm/vllm-openai:v0.33.0",
        "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.2",
        "localhost:5000/a/b__c:Tag_1.0-x",
        "[::1]:5000/own",
        f"org/own@{DIGEST}",
        f"registry.example.com/a.b/c:1@{DIGEST}",
    ],
)
def test_images(text: str) -> None:
    assert is_image(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "=x",
        "nope=i:1",
        'x y"z',
        "org/Own",
        "-x",
        "/own",
        "own/",
        "a//b",
        "own:",
        "own:-1",
        "own:" + "t" * 129,
        "own@sha256:abc",
        "https://example.com/own",
        "own\n",
        "${IMAGE}",
        "a" * 600,
    ],
)
def test_what_is_no_image(text: str) -> None:
    assert not is_image(text)
