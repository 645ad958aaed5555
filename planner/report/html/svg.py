"""Charts as inline SVG: drawn by matplotlib, then made part of the page: its colours, its fonts, ids of their own."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

from planner.report.content import Table
from planner.report.figures import visible

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
TEXT, MUTED, GROUND = "#010101", "#010102", "#010103"
SERIES = tuple(f"#0102{i:02x}" for i in range(1, 8))
"""Stand-ins, since matplotlib takes no variables: the page has one set of colours for each mode."""
VARIABLES = {
    TEXT: "var(--text)",
    MUTED: "var(--muted)",
    GROUND: "var(--ground)",
    **{color: f"var(--series-{i})" for i, color in enumerate(SERIES, 1)},
}
MOST_LETTERS = 26
INCHES = (4.6, 2.9)
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "planner",
    "svg.fonttype": "none",
    "text.parse_math": False,  # names from a spec are text, dollar signs included
    "font.size": 9.0,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": MUTED,
    "grid.linewidth": 0.3,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
_NAMED = " "
_PLACES = frozenset({"d", "x", "y", "transform", "points", "width", "height"})
_DECIMALS = re.compile(r"-?\d+\.\d+")
_COLOR = re.compile(r"#[0-9a-f]{6}\b")
_FONT = re.compile(r"font: (?:\w+ )?([\d.]+px) [^;]*")
_FAMILY = re.compile(r"font-family: [^;]*; ?")
_UNTURNED = "rotate(-0 "
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


@dataclass(frozen=True)
class Figure:
    """A chart of a report, and the same as a table; `name` is unique in the page, and a wide one has a row of its own."""

    name: str
    title: str
    svg: Markup
    data: Table
    is_wide: bool = False


def draw(name: str, title: str, paint: Callable[[Axes], None], inches: tuple[float, float] = INCHES) -> Markup:
    """Return a chart as an SVG element with a title; the same bytes whenever it is drawn by the same library."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the measuring font lacks: the page's own fonts show them
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        canvas = Canvas(figsize=inches)
        paint(canvas.subplots())
        file = io.StringIO()
        FigureCanvasSVG(canvas).print_svg(file, metadata={"Date": None})
    return _inline(file.getvalue(), name, title)


def short(text: str, most: int = MOST_LETTERS) -> str:
    """Return a user's text as it fits a chart."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def named(text: str) -> str:
    """Return the label of a series whose name is a user's: matplotlib leaves those out that start with `_`."""
    return f"{_NAMED}{text}"


def legend(axes: Axes, columns: int, middle: float = 0.5) -> None:
    """Paint the names of all series that have one above a chart."""
    painted = axes.legend(loc="lower center", bbox_to_anchor=(middle, 1.0), ncols=columns)
    for text in painted.get_texts():
        text.set_text(text.get_text().removeprefix(_NAMED))


def bars(axes: Axes, names: list[str], values: list[float], label: Callable[[float], str]) -> None:
    """Paint horizontal bars, the first on top, each with its value."""
    places = range(len(names))
    axes.barh(places, values, color=SERIES[0], height=0.62)
    axes.set_yticks(places, [short(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0.0, max([*values, 0.0]) * 1.25 or 1.0)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    for place, value in zip(places, values, strict=True):
        axes.annotate(label(value), (value, place), (4, 0), textcoords="offset points", va="center")


def _inline(text: str, name: str, title: str) -> Markup:
    """Turn a file of matplotlib into an element of a page."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    for defs in root.findall(f"{{{SVG}}}defs"):
        for style in defs.findall(f"{{{SVG}}}style"):
            defs.remove(style)  # it would hold for the whole page, which has it for charts alone
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    _rename(root, name)
    for node in root.iter():
        for key in _PLACES & node.attrib.keys():
            node.set(key, _DECIMALS.sub(_rounded, " ".join(node.attrib[key].split())))
        if "style" in node.attrib:
            node.set("style", _restyled(node.attrib["style"]))
        if node.attrib.get("transform", "").startswith(_UNTURNED):
            del node.attrib["transform"]
        if node.tag != f"{{{SVG}}}text":
            node.text = None
        node.tail = None
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    label = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{name}-title"})
    label.text = title
    root.insert(0, label)
    root.attrib.update({"role": "img", "aria-labelledby": f"{name}-title", "class": "chart"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _rename(root: ElementTree.Element, name: str) -> None:
    """Drop ids that nothing refers to, and begin the others with the name of the chart."""
    link = f"{{{XLINK}}}href"
    nodes = list(root.iter())
    wanted = {node.attrib[link].removeprefix("#") for node in nodes if link in node.attrib}
    wanted |= {found for node in nodes for value in node.attrib.values() for found in _REFERENCE.findall(value)}
    for node in nodes:
        own = node.attrib.pop("id", None)
        if own in wanted:
            node.set("id", f"{name}-{own}")
        if link in node.attrib:
            node.set("href", f"#{name}-{node.attrib.pop(link).removeprefix('#')}")
        for key, value in node.attrib.items():
            node.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))


def _rounded(match: re.Match[str]) -> str:
    """Return a length with two decimals: a hundredth of a point is not seen."""
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _restyled(style: str) -> str:
    colored = _COLOR.sub(lambda match: VARIABLES.get(match[0], match[0]), style)
    return _FAMILY.sub("", _FONT.sub(r"font-size: \1", colored))
