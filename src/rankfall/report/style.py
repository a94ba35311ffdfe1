"""Style and saving of figures: the width of a printed page, fonts that are legible there, and four files per figure."""

import re
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from rankfall.annotations import Axes, DataFrame, Figure
from rankfall.disk import write

WIDTH = 7.0  # inches, the text width of a printed page; no figure is wider, so that fonts keep their size
FORMATS = ("png", "pdf", "svg", "csv")  # files of a figure, besides its caption
WITHOUT_TIME: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.linewidth": 0.7,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.6,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.hashsalt": "rankfall",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Picture:
    """A figure, its caption in a sentence or two, and the numbers of everything drawn, for its CSV file."""

    figure: Figure
    caption: str
    numbers: DataFrame | None = None


def apply_style() -> AbstractContextManager[None]:
    """Return a context in which figures have this style. It restores matplotlib's settings at its end."""
    import matplotlib

    if "matplotlib.pyplot" not in sys.modules:
        matplotlib.use("agg")  # seaborn uses pyplot, which must not open windows
    return matplotlib.rc_context(SETTINGS)


def canvas(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """Create a figure of rows x columns axes without a display and without pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in axes]


def tower(power: int) -> str:
    """Return 10^-(10^power) as a label."""
    return f"$10^{{-10^{{{power}}}}}$" if power > 2 else f"$10^{{-{10**power}}}$"


def power(log10: float) -> str:
    """Return 10^log10 as text, a decimal number if it is readable, else a power."""
    if log10 > -3:
        return f"{10**log10:.3g}"
    return f"10^{log10:.1f}" if log10 > -10 else f"10^{log10:,.0f}" if log10 > -1e9 else f"10^({log10:.2e})"


def space_ticks(first: int, last: int) -> list[int]:
    """Return about seven round numbers from first to last for the labels of an axis."""
    steps = (factor * 10**size for size in range(9) for factor in (1, 2, 5))
    step = next(step for step in steps if last - first < 7 * step)
    return [number for number in range(first, last + 1) if number % step == 0]


def save(picture: Picture, out: Path, caption: Path | None = None) -> None:
    """Write PNG, PDF, SVG and CSV side by side, and the caption, with the lines that coincide. The same data give the same bytes."""
    from rankfall.report.captions import describe_coinciding

    picture = replace(picture, caption=picture.caption + describe_coinciding(picture.figure))
    for kind, content in files(picture).items():
        write(out.with_suffix(f".{kind}"), content)
    if caption:
        write(caption, escape(picture.caption))


def files(picture: Picture) -> dict[str, bytes]:
    """Return kind of file -> content. The layout takes longer than drawing, so it is computed once for all three pictures."""
    import pandas as pd

    contents = {}
    with apply_style():
        for kind, metadata in WITHOUT_TIME.items():
            buffer = BytesIO()
            picture.figure.savefig(buffer, format=kind, metadata=metadata)
            # None keeps the layout. "none" would leave a placeholder, for which matplotlib draws everything twice.
            picture.figure.set_layout_engine(None)
            contents[kind] = buffer.getvalue()
    numbers = pd.DataFrame({"caption": [picture.caption]}) if picture.numbers is None else picture.numbers
    return contents | {"csv": numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()}


# Characters that begin or end inline markup, links or Snakemake's templates, or that begin a list, directive or table at the start of a
# line. Others are not escaped, because captions are also read as files.
MARKED = re.compile(r"[\\`*|_@{]|(?<=\{)[%#]|:(?!\s)|^[^\w\s]")
NUMBERED = re.compile(r"^([^\W_]+)(?=[.)](\s|$))")  # such as `12. ` or `iv) `: a list


def escape(text: str) -> str:
    """Return text as a single paragraph of reStructuredText, without directives, roles, links, lists, headings or substitutions."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return NUMBERED.sub(r"\1\\", MARKED.sub(r"\\\g<0>", " ".join(printable.split())))


def unescape(text: str) -> str:
    """Return the original text of `escape`, in one line."""
    return re.sub(r"\\(.)", r"\1", text)
