"""Traces of requests: every format is read alike, and whatever is wrong with a file is said in words."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.diagnostics import DiagnosticError
from planner.simulate import trace_rows, trace_text
from planner.simulate.trace import Trace, read_trace
from planner.simulate.trace_columns import YEARS_10_S

OWN = "arrival_s,input_tokens,output_tokens\n"
EXAMPLES = Path(__file__).parents[2] / "specs" / "traces"
REQUESTS = [(0.0, 374, 44), (4.31451, 396, 109), (4.54257, 879, 55)]


def read(folder: Path, text: str | bytes, name: str = "t.csv") -> Trace:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(path)


def requests(trace: Trace) -> list[tuple[float, int, int]]:
    assert trace.arrival_s is not None
    columns = (np.round(trace.arrival_s, 6).tolist(), trace.input_tokens.tolist(), trace.output_tokens.tolist())
    return list(zip(*columns, strict=True))


def hits(trace: Trace) -> list[int] | None:
    return None if trace.hit_tokens is None else trace.hit_tokens.tolist()


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMATS = {
    "own": OWN + "0,374,44\n4.31451,396,109\n4.54257,879,55\n",
    "windows": "\ufeff" + OWN.replace("\n", "\r\n") + "0,374,44\r\n4.31451,396,109\r\n4.54257,879,55\r\n",
    "old mac": OWN.replace("\n", "\r") + "0,374,44\r4.31451,396,109\r4.54257,879,55\r",
    "no end of the last line": OWN + "0,374,44\n4.31451,396,109\n4.54257,879,55",
    "blank lines": "\n \n" + OWN + "0,374,44\n\n,,\n4.31451,396,109\n4.54257,879,55\n\n",
    "quotes": '"arrival_s", "input_tokens","output_tokens"\n"0","374", "44"\n4.31451,396,109\n4.54257,"879",55\n',
    "quotes below": OWN + '0,374,44\n"4.31451",396,109\n4.54257,879,55\n',
    "cells over lines": "note," + OWN + '"a\nb",0,374,44\n"c, d",4.31451,396,109\n,4.54257,879,55\n',
    "spaces and points": " arrival_s , input_tokens,output_tokens\n 0 , 374.0,44\n4.31451,+396,1.09e2\n4.54257,879,55\n",
    "commas at the end": OWN.strip() + ",,\n0,374,44,,\n4.31451,396,109,x,\n4.54257,879,55\n",
    "other order": "output_tokens,model,input_tokens,arrival_s\n44,m,374,100\n109,m,396,104.31451\n55,m,879,104.54257\n",
    "unix time": OWN + "1700000000,374,44\n1700000004.31451,396,109\n1700000004.54257,879,55\n",
    "azure 2023": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951000,396,109\n2023-11-16 18:15:51.2231600,879,55\n",
    "azure 2024": "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,374,44\n"
    "2024-05-10 00:00:04.324440+00:00,396,109\n2024-05-10 00:00:04.552500+00:00,879,55\n",
    "azure 2025": "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15 23:59:58+00:00,1,374,44\n"
    "2024-10-16T00:00:02.31451Z,0,396,109\n2024-10-16 02:00:02.542570+02:00,2,879,55\n",
    "burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,374,44,418,API log\n"
    "9.31451,ChatGPT,396,109,505,API log\n9.54257,GPT-4,879,55,934,Conversation log\n",
    "vidur": "arrived_at,num_prefill_tokens,num_decode_tokens\n0,374,44\n4.31451,396,109\n4.54257,879,55\n",
    "mooncake csv": "timestamp,input_length,output_length\n27482,374,44\n31796.51,396,109\n32024.57,879,55\n",
    "own jsonl": lines(*({"arrival_s": a, "input_tokens": i, "output_tokens": o} for a, i, o in REQUESTS)),
    "jsonl of text": lines(
        *({"arrival_s": str(a), "input_tokens": str(i), "output_tokens": o} for a, i, o in REQUESTS)
    ),
    "jsonl of dates": lines(
        {"arrival_s": "2024-05-10T00:00:00Z", "input_tokens": 374, "output_tokens": 44},
        {"arrival_s": "2024-05-10T00:00:04.314510Z", "input_tokens": 396, "output_tokens": 109},
        {"arrival_s": "2024-05-10T00:00:04.542570Z", "input_tokens": 879, "output_tokens": 55},
    ),
    "mooncake jsonl": "\n"
    + lines(*({"timestamp": a * 1e3, "input_length": i, "output_length": o} for a, i, o in REQUESTS)),
    "bailian jsonl": lines(
        *({"chat_id": 1, "timestamp": a + 61, "input_length": i, "output_length": o} for a, i, o in REQUESTS)
    ),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_each_format_gives_the_same_requests(tmp_path: Path, name: str, packed: bool) -> None:
    data = FORMATS[name].encode()
    data = gzip.compress(data) if packed else data
    trace = read(tmp_path, data, "trace.bin")
    assert requests(trace) == REQUESTS
    assert (trace.rows, dict(trace.skipped), trace.notes, trace.hit_tokens) == (3, {}, (), None)
    assert trace.sha256 == hashlib.sha256(data).hexdigest()
    assert trace.path == str(tmp_path / "trace.bin")


def test_rates_are_over_the_gaps(tmp_path: Path) -> None:
    trace = read(tmp_path, OWN + "10,1,1\n12,1,1\n14,1,1\n")
    assert (trace.has_arrivals, trace.duration_s, trace.requests_per_s) == (True, 4.0, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        OWN + ",7,1\n,8,2\n",
        "input_tokens,output_tokens\n7,1\n8,2\n",
        "prefix_group,input_tokens,output_tokens\n1,7,1\n1,8,2\n",
        '{"input_tokens": 7, "output_tokens": 1}\n{"input_tokens": 8, "output_tokens": 2, "arrival_s": null}\n',
        '{"arrival_s": "", "input_tokens": 7, "output_tokens": 1}\n{"input_tokens": 8, "output_tokens": 2}\n',
    ],
)
def test_lengths_alone(tmp_path: Path, text: str) -> None:
    trace = read(tmp_path, text)
    assert (trace.arrival_s, trace.has_arrivals, trace.duration_s, trace.requests_per_s) == (None, False, 0.0, 0.0)
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist(), trace.rows) == ([7, 8], [1, 2], 2)
    assert (dict(trace.skipped), trace.notes) == ({}, ())


def test_columns_cannot_be_written_to(tmp_path: Path) -> None:
    trace = read(tmp_path, "arrival_s,input_tokens,output_tokens,prefix_hit_tokens\n0,1,1,0\n1,1,1,0\n")
    for column in (trace.arrival_s, trace.input_tokens, trace.output_tokens, trace.hit_tokens):
        assert column is not None
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    with pytest.raises(TypeError):
        trace.skipped["x"] = 1  # type: ignore[index]


def test_unsorted_arrivals_are_sorted_with_their_rows(tmp_path: Path) -> None:
    text = "arrival_s,input_tokens,output_tokens,prefix_hit_tokens\n5,50,5,9\n3,31,1,1\n3,32,2,2\n9,90,9,0\n"
    trace = read(tmp_path, text)
    assert requests(trace) == [(0.0, 31, 1), (0.0, 32, 2), (2.0, 50, 5), (6.0, 90, 9)]
    assert hits(trace) == [1, 2, 9, 0]
    assert trace.notes == ("2 arrivals were out of order and were sorted",)
    trace = read(tmp_path, OWN + "1,1,1\n0,1,1\n2,1,1\n")
    assert trace.notes == ("1 arrival was out of order and was sorted",)


def test_hits_as_stated(tmp_path: Path) -> None:
    text = (
        "arrival_s,input_tokens,output_tokens,prefix_group,prefix_hit_tokens\n0,100,1,7,64\n1,100,1,7,\n2,100,1,7,100\n"
    )
    trace = read(tmp_path, text)
    assert hits(trace) == [64, 0, 99]
    assert trace.notes == (
        "cached tokens are blank in 1 row; none are taken there",
        "1 prompt cached as a whole: the last token is computed all the same",
    )
    blank = read(tmp_path, "arrival_s,input_tokens,output_tokens,prefix_hit_tokens\n0,100,1,\n1,100,1,\n")
    assert (blank.hit_tokens, blank.notes) == (None, ())


def test_hits_that_come_late_in_jsonl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_text, "BLOCK_BYTES", 64)
    rows: list[dict[str, Any]] = [{"arrival_s": i, "input_tokens": 9, "output_tokens": 1} for i in range(5)]
    rows[4]["prefix_hit_tokens"] = 4
    assert hits(read(tmp_path, lines(*rows))) == [0, 0, 0, 0, 4]


def mooncake(size: int, count: int = 200) -> tuple[list[dict[str, Any]], list[int]]:
    """Draw requests that share prompts, and count their hits one by one."""
    draw = random.Random(size)
    rows: list[dict[str, Any]] = []
    expected, seen = [], set()
    for i in range(count):
        tokens = draw.randint(1, 9 * size)
        shared = draw.randint(0, 9)
        ids = [block if block < shared else 1000 * i + block + 10 for block in range(-(-tokens // size))]
        known = 0
        while known < len(ids) and ids[known] in seen:
            known += 1
        seen.update(ids)
        expected.append(min(known * size, tokens - 1))
        rows.append({"timestamp": 10 * i, "input_length": tokens, "output_length": 5, "hash_ids": ids})
    return rows, expected


@pytest.mark.parametrize("size", [512, 16, 128])
def test_hits_from_blocks(tmp_path: Path, size: int) -> None:
    rows, expected = mooncake(size)
    trace = read(tmp_path, lines(*rows))
    assert hits(trace) == expected
    assert max(expected) > size
    assert (f"blocks of `hash_ids` have {size} tokens, by their counts" in trace.notes) == (size != 512)
    table = "timestamp,input_length,output_length,hash_ids\n" + "".join(
        f'{row["timestamp"]},{row["input_length"]},5,"{row["hash_ids"]}"\n' for row in rows
    )
    assert hits(read(tmp_path, table)) == expected


def test_blocks_of_rows_left_out_are_not_cached(tmp_path: Path) -> None:
    rows = [
        {"timestamp": i, "input_length": 1000, "output_length": o, "hash_ids": [1, 2]} for i, o in enumerate((0, 1, 1))
    ]
    assert hits(read(tmp_path, lines(*rows))) == [0, 999]


def test_blocks_that_fit_no_size(tmp_path: Path) -> None:
    rows = [{"timestamp": i, "input_length": 1000, "output_length": 1, "hash_ids": [1] * (i + 1)} for i in range(9)]
    trace = read(tmp_path, lines(*rows))
    assert trace.hit_tokens is None
    assert trace.notes == ("the counts of `hash_ids` fit no size of blocks, so cached tokens are not known",)


@pytest.mark.parametrize("ids", ['"x"', "[[1]]", "{}", "7", '"[1"', "[null]"])
def test_blocks_that_are_no_list_of_ids_say_nothing(tmp_path: Path, ids: str) -> None:
    row = '{"timestamp": %d, "input_length": 7, "output_length": 1, "hash_ids": %s}\n'
    assert read(tmp_path, "".join(row % (i, ids) for i in range(3))).hit_tokens is None


GOOD = "0,10,1\n1,10,1\n2,10,1\n3,10,1\n"
LEFT_OUT = {
    "4,,1": "no tokens",
    "4,10": "no tokens",
    "4,0,1": "no tokens",
    "4,10,0": "no tokens",
    "4,-1,1": "negative tokens",
    "4,10,-0.5": "negative tokens",
    "4,ten,1": "not a number",
    "x,10,1": "not a number",
    "4,nan,1": "not a number",
    "4,10,inf": "not a number",
    "4,10,1e999": "not a number",
    "NaN,10,1": "not a number",
    "2024-05-10,10,1": "not a number",
    "4,10.5,1": "not whole tokens",
    "4,10000001,1": "more than 10,000,000 tokens",
    "-1,10,1": "negative arrival",
    "315576100,10,1": "arrival beyond 10 years",
    ",10,1": "no arrival",
    "4,1,000,1": "more cells than columns",
}


@pytest.mark.parametrize("where", [0, 2])
@pytest.mark.parametrize("row", LEFT_OUT)
def test_rows_that_are_left_out(tmp_path: Path, row: str, where: int) -> None:
    good = GOOD.splitlines(keepends=True)
    text = OWN + "".join([*good[:where], row + "\n", *good[where:]]) + row + "\n"
    trace = read(tmp_path, text)
    assert dict(trace.skipped) == {LEFT_OUT[row]: 2}
    assert dict(trace.skipped_at) == {LEFT_OUT[row]: 2 + where}
    assert trace.rows == 6
    assert requests(trace) == [(float(i), 10, 1) for i in range(4)]
    assert trace.notes == (f"the first row that was left out is {tmp_path}/t.csv:{2 + where} ({LEFT_OUT[row]})",)


JSON_LEFT_OUT = {
    '{"arrival_s": 4, "input_tokens": true, "output_tokens": 1}': "not a number",
    '{"arrival_s": 4, "input_tokens": [1], "output_tokens": 1}': "not a number",
    '{"arrival_s": 4, "input_tokens": NaN, "output_tokens": 1}': "not a number",
    '{"arrival_s": 4, "input_tokens": 1%s, "output_tokens": 1}' % ("0" * 400): "not a number",
    '{"arrival_s": 4, "input_tokens": 1%s, "output_tokens": 1}' % ("0" * 5000): "not a JSON object",
    '{"arrival_s": 4, "input_tokens": null, "output_tokens": 1}': "no tokens",
    '{"arrival_s": 4, "output_tokens": 1}': "no tokens",
    '{"arrival_s": null, "input_tokens": 10, "output_tokens": 1}': "no arrival",
    '{"arrival_s": 4, "input_tokens": 10, "outp': "not a JSON object",
    '{"arrival_s": 4, "input_tokens": 10, "output_tokens": 1} {}': "not a JSON object",
    "17": "not a JSON object",
    "[" * 100_000: "not a JSON object",
}


@pytest.mark.parametrize("row", JSON_LEFT_OUT, ids=range(len(JSON_LEFT_OUT)))
def test_lines_of_json_that_are_left_out(tmp_path: Path, row: str) -> None:
    good = lines(*({"arrival_s": i, "input_tokens": 10, "output_tokens": 1} for i in range(4)))
    trace = read(tmp_path, good + row + "\n\n" + row)
    assert (dict(trace.skipped), dict(trace.skipped_at)) == ({JSON_LEFT_OUT[row]: 2}, {JSON_LEFT_OUT[row]: 5})
    assert (trace.rows, trace.input_tokens.tolist()) == (6, [10] * 4)


def test_dates_that_are_left_out(tmp_path: Path) -> None:
    times = [
        "soon",
        "2024-05-10 00:00:00",
        "2024-05-10 00:00:07",
        "1970-01-01 00:00:00",
        "12",
        "2024-05-10 00:00:05",
        "",
    ]
    times += ["2024-05-10 00:00:06"] * 3
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"{time},1,1\n" for time in times)
    trace = read(tmp_path, text)
    assert trace.arrival_s is not None
    assert trace.arrival_s.tolist() == [0.0, 5.0, 6.0, 6.0, 6.0, 7.0]
    assert dict(trace.skipped_at) == {"not a number": 2, "arrival beyond 10 years": 5, "no arrival": 8}
    assert trace.skipped["not a number"] == 2


CHOICES = (
    "columns of a trace: arrival_s, input_tokens, output_tokens; or of Azure: TIMESTAMP, ContextTokens, GeneratedTokens; "
    "or of BurstGPT: Timestamp, Request tokens, Response tokens; or of Mooncake: timestamp, input_length, output_length; "
    "or of Vidur: arrived_at, num_prefill_tokens, num_decode_tokens"
)
UTF_8 = "save it as UTF-8"
WRONG: list[tuple[str, str | bytes, int, str, str]] = [
    ("empty", "", 1, "the file is empty", CHOICES),
    ("blank", " \n\n", 1, "the file is empty", CHOICES),
    ("mark alone", "\ufeff", 1, "the file is empty", CHOICES),
    ("empty gzip", gzip.compress(b""), 1, "the file is empty", CHOICES),
    ("no rows", OWN, 1, "the table has no rows below its columns", CHOICES),
    ("blank rows", OWN + "\n,,\n", 1, "the table has no rows below its columns", CHOICES),
    ("no columns", "0,374,44\n1,1,1\n", 1, "no known columns in the first line; it has to name the columns", CHOICES),
    ("empty object", "{}\n", 1, "no known keys in the first line; it has to name the columns", CHOICES),
    (
        "slip",
        "\narrival_s,imput_tokens,output_tokens\n0,1,1\n",
        2,
        "columns are missing: `input_tokens` (there is `imput_tokens`)",
        CHOICES,
    ),
    (
        "all slips",
        "arrival,imput_token,Output_Tokens\n0,1,1\n",
        1,
        "columns are missing: `arrival_s` (there is `arrival`), `input_tokens` (there is `imput_token`), "
        "`output_tokens` (there is `Output_Tokens`)",
        CHOICES,
    ),
    (
        "case",
        "timestamp,ContextTokens,GeneratedTokens\n0,1,1\n",
        1,
        "columns are missing: `TIMESTAMP` (there is `timestamp`)",
        CHOICES,
    ),
    ("other time", "when,input_tokens,output_tokens\n0,1,1\n", 1, "columns are missing: `arrival_s`", CHOICES),
    (
        "key",
        '{"timestamp": 0, "input_length": 1, "output_len": 1}\n',
        1,
        "keys are missing: `output_length` (there is `output_len`)",
        CHOICES,
    ),
    (
        "twice",
        "arrival_s,input_tokens,output_tokens,input_tokens\n0,1,1,1\n",
        1,
        "the column `input_tokens` is there twice",
        "leave one of them out",
    ),
    (
        "key twice",
        '{"arrival_s": 0, "arrival_s": 1, "input_tokens": 1, "output_tokens": 1}\n',
        1,
        "the key `arrival_s` is there twice",
        "leave one of them out",
    ),
    *(
        (
            f"separator {mark!r}",
            (OWN + GOOD).replace(",", mark),
            1,
            f"the columns are separated by {name}, not by commas; save the table as CSV with commas",
            CHOICES,
        )
        for mark, name in trace_rows.SEPARATORS.items()
    ),
    ("latin", OWN.encode() + b"0,1,1\n1,\xe9,1\n", 3, "this file is not UTF-8 text", UTF_8),
    ("cut character", OWN.encode() + b"0,1,1\n\xe2\x82", 3, "this file is not UTF-8 text", UTF_8),
    ("utf-16", OWN.encode("utf-16"), 1, "this file is UTF-16 text, not UTF-8 text", UTF_8),
    ("nul", OWN + "0,1,1\n1,\0,1\n", 3, "this file holds a NUL byte, so it is no text", "save it as UTF-8 text"),
    (
        "zip",
        b"PK\x03\x04\x14\0",
        1,
        "this file is a zip archive or a spreadsheet, not UTF-8 text",
        "unpack it, or save the table as CSV",
    ),
    ("parquet", b"PAR1\x15", 1, "this file is a Parquet file, not UTF-8 text", "save the table as CSV"),
    (
        "zstd",
        b"\x28\xb5\x2f\xfd\0",
        1,
        "this file is packed with zstd, not UTF-8 text",
        "unpack it first, or pack it with gzip",
    ),
    (
        "cut gzip",
        gzip.compress(OWN.encode() * 99)[:-9],
        1,
        "this gzip file is damaged or cut short",
        "pack or fetch it again",
    ),
    ("no gzip", b"\x1f\x8bnothing", 1, "this gzip file is damaged or cut short", "pack or fetch it again"),
    ("gzip of no text", gzip.compress(b"\xff\xff"), 1, "this file is not UTF-8 text", UTF_8),
    (
        "long cell",
        OWN + "0,1,1\n1," + "1" * 20_001 + ",1\n",
        3,
        "a cell is longer than 20,000 characters",
        "close its quote, or leave columns of text out of the table",
    ),
    (
        "open quote",
        OWN + '0,1,1\n1,"1,1\n' + GOOD * 1000,
        3,
        "a cell is longer than 20,000 characters",
        "close its quote, or leave columns of text out of the table",
    ),
    (
        "open quote at the end",
        OWN + '0,1,1\n1,"1,1\n',
        3,
        "not CSV: unexpected end of data",
        "check the quotes in this line",
    ),
    (
        "text after a quote",
        OWN + '0,1,1\n1,"1"x,1\n',
        3,
        "not CSV: ',' expected after '\"'",
        "check the quotes in this line",
    ),
    (
        "list of json",
        '[{"arrival_s": 0}]',
        1,
        "this file is a list of JSON, not one object a line",
        "write one request a line, without brackets around them",
    ),
    (
        "object over lines",
        '{\n "arrival_s": 0\n}',
        1,
        "the first line is not a whole JSON object",
        "write one request a line, as {...}",
    ),
    (
        "one time",
        OWN + "7,1,1\n" * 2000,
        1,
        "all arrivals (2,000) are at the same time, so they tell no rate",
        "give two or more times, or leave them blank to keep lengths alone",
    ),
    (
        "one request",
        OWN + "7,1,1\n",
        1,
        "one arrival alone tells no rate",
        "give two or more times, or leave them blank to keep lengths alone",
    ),
    (
        "unusable rows",
        OWN + "0,1,1\n1,0,1\n1,x,1\n1,1,0\n",
        3,
        "3 of 4 rows cannot be used; 2 of them for: no tokens, the first in {path}:3",
        "a request has at least one input token and one output token",
    ),
    (
        "no arrivals mostly",
        OWN + "0,1,1\n,1,1\n,1,1\n",
        3,
        "2 of 3 rows cannot be used; 2 of them for: no arrival, the first in {path}:3",
        "give every row its arrival, or leave all of them blank to keep lengths alone",
    ),
    (
        "all rows",
        OWN + "a,1,1\nb,1,1\n",
        2,
        "2 of 2 rows cannot be used; 2 of them for: not a number, the first in {path}:2",
        "tokens are plain numbers, such as 1200; arrivals are too, or dates with times",
    ),
]


@pytest.mark.parametrize(("text", "line", "message", "help"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_what_is_wrong_is_said(tmp_path: Path, text: str | bytes, line: int, message: str, help: str) -> None:
    with pytest.raises(DiagnosticError) as raised:
        read(tmp_path, text)
    (wrong,) = raised.value.diagnostics
    assert wrong.message == message.format(path=tmp_path / "t.csv")
    assert wrong.span is not None
    assert (wrong.span.path, wrong.span.line, wrong.help) == (str(tmp_path / "t.csv"), line, (help,))
    assert wrong.code == ("json/syntax" if "JSON" in message else "csv/unusable")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is a folder, not a file"),
        ("missing.csv", "no such file or directory"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_paths_that_cannot_be_read(tmp_path: Path, name: str, why: str) -> None:
    path = tmp_path / name
    with pytest.raises(DiagnosticError) as raised:
        read_trace(path)
    assert raised.value.diagnostics[0].message == f"cannot read {path}: {why}"


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_text, "LONGEST_LINE", 5000)
    monkeypatch.setattr(trace_text, "BLOCK_BYTES", 1000)
    with pytest.raises(DiagnosticError, match="a line is longer than 5,000 characters") as raised:
        read(tmp_path, "\n" + '{"arrival_s": 0, ' + " " * 100_000)
    assert raised.value.diagnostics[0].span == trace_text.Span(str(tmp_path / "t.csv"), 2, 1, 2)


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("name", FORMATS)
def test_blocks_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    monkeypatch.setattr(trace_text, "BLOCK_BYTES", block)
    monkeypatch.setattr(trace_rows, "CHUNK_ROWS", 2)
    assert requests(read(tmp_path, FORMATS[name])) == REQUESTS


TOKENS = st.integers(1, 10_000_000)
ARRIVALS = st.integers(0, int(YEARS_10_S) * 1000).map(lambda ms: ms / 1000.0)
ROWS = st.lists(st.tuples(ARRIVALS, TOKENS, TOKENS), min_size=2, max_size=20).filter(
    lambda rows: len({row[0] for row in rows}) > 1
)
MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(rows=ROWS, shape=st.sampled_from(["csv", "jsonl", "mooncake", "azure", "gzip"]))
def test_what_is_written_is_read(tmp_path: Path, rows: list[tuple[float, int, int]], shape: str) -> None:
    if shape == "jsonl":
        data = lines(*({"arrival_s": a, "input_tokens": i, "output_tokens": o} for a, i, o in rows)).encode()
    elif shape == "mooncake":
        data = lines(
            *({"timestamp": round(a * 1e3), "input_length": i, "output_length": o} for a, i, o in rows)
        ).encode()
    elif shape == "azure":
        start = np.datetime64("2024-05-10T00:00:00.000", "ms")
        dates = (f"{start + np.timedelta64(round(a * 1e3), 'ms')},{i},{o}\n" for a, i, o in rows)
        data = ("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(dates)).encode()
    else:
        data = (OWN + "".join(f"{a},{i},{o}\n" for a, i, o in rows)).encode()
        data = gzip.compress(data) if shape == "gzip" else data
    trace = read(tmp_path, data)
    first = min(row[0] for row in rows)
    expected = sorted(rows, key=lambda row: row[0])
    assert trace.arrival_s is not None
    assert np.allclose(trace.arrival_s, [row[0] - first for row in expected], rtol=0.0, atol=1e-6)
    assert trace.input_tokens.tolist() == [row[1] for row in expected]
    assert trace.output_tokens.tolist() == [row[2] for row in expected]
    assert (trace.arrival_s[0], trace.rows, dict(trace.skipped)) == (0.0, len(rows), {})


PIECES = st.sampled_from(
    [
        *OWN.strip().split(","),
        ",",
        "\n",
        '"',
        "{",
        "}",
        "[",
        ":",
        "0",
        "1",
        "-",
        "nan",
        "2024-05-10",
        "\0",
        ";",
        " ",
        "\r",
    ]
)


@MANY
@given(
    pieces=st.lists(PIECES | st.text(max_size=3), max_size=30), head=st.sampled_from(["", OWN, FORMATS["own jsonl"]])
)
def test_no_text_makes_a_traceback(tmp_path: Path, pieces: list[str], head: str) -> None:
    try:
        trace = read(tmp_path, (head + "".join(pieces)).encode("utf-8", "replace"))
    except DiagnosticError:
        return
    assert trace.rows >= trace.input_tokens.size > 0


@MANY
@given(data=st.binary(max_size=60), packed=st.booleans())
def test_no_bytes_make_a_traceback(tmp_path: Path, data: bytes, packed: bool) -> None:
    with pytest.raises(DiagnosticError):
        read(tmp_path, b"\x1f\x8b\x08" + data if packed else data)


@pytest.mark.parametrize(
    ("name", "count", "span", "tokens", "has_hits"),
    [
        ("azure2023_conv_10min", 2867, 599.971, 3_287_402, False),
        ("mooncake_conversation_10min", 1750, 597.0, 24_486_514, True),
    ],
)
def test_the_examples_are_read(name: str, count: int, span: float, tokens: int, has_hits: bool) -> None:
    path = EXAMPLES / f"{name}.csv"
    trace = read_trace(path)
    assert path.stat().st_size < 150_000
    assert (trace.rows, trace.duration_s, int(trace.input_tokens.sum())) == (count, span, tokens)
    assert (dict(trace.skipped), trace.hit_tokens is not None) == ({}, has_hits)
    if trace.hit_tokens is not None:
        assert (trace.hit_tokens < trace.input_tokens).all()
