"""`rankfall measure model NAME --study identity`: tables and figures of token identity in a model's states."""

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.terminal import clean

if TYPE_CHECKING:
    from pandas import DataFrame


def measure(args: argparse.Namespace, phase: str, config: dict[str, Any], out: Path) -> int:
    """Measure the parts of the study one after the other and write each as soon as it is measured."""
    from rankfall import components
    from rankfall.measure.context import Context
    from rankfall.report import style, tables

    given = {"phase": phase, "config": config, "model": args.name}
    asked = ("revision", "seeds", "text", "samples", "sentences", "length", "tokens", "variants")
    given |= {name: value for name in asked if (value := getattr(args, name)) is not None}
    given |= {} if args.length is None else {"lengths": [args.length]}
    for name, (show, figures) in PARTS.items():
        found = components.load("measure", name)
        accepted = inspect.signature(found).parameters
        rows = found(Context(), **{option: value for option, value in given.items() if option in accepted})
        tables.write(name, rows, out / f"{name}.parquet")
        frame = tables.read_frame(out / f"{name}.parquet", name)
        if show is not None:
            show(frame, args.name)
        for figure in figures:
            with style.apply_style():
                picture = components.load("figure", figure)(lambda _, frame=frame: frame)
            style.save(picture, out / f"{figure}.png", out / f"{figure}.rst")
            print(f"{picture.caption}\nwritten to {out}/: {name}.parquet, {figure}.png, .pdf, .svg, .csv")
    return 0


def show_tokens(frame: "DataFrame", name: str) -> None:
    """Print the rates by layer within the sentence, by cosine."""
    from rich.console import Console
    from rich.table import Table

    from rankfall.identity.token_identity.figure import MAPS, select_own
    from rankfall.identity.token_identity.shown import NEAREST
    from rankfall.report.selection import select

    part = select_own(select(frame, NEAREST))
    title = f"{name}: share of tokens whose own embedding is the nearest in the sentence, by cosine"
    table = Table(
        title=clean(title), title_justify="left", caption="95% intervals over sentences", caption_justify="left"
    )
    variants = sorted(part.variant.unique())
    for column in ("layer", *(f"{variant}: {kind}" for variant in variants for kind in MAPS)):
        table.add_column(column, justify="right")
    for layer, rows in part[part.layer.notna()].groupby("layer"):
        mean = rows.groupby(["variant", "map"])[["rate", "low", "high"]].mean()
        cells = [
            f"{mean.rate[key]:.3f} ({mean.low[key]:.2f} to {mean.high[key]:.2f})" if key in mean.index else ""
            for key in ((variant, kind) for variant in variants for kind in MAPS)
        ]
        table.add_row(str(layer), *cells)
    Console().print(table)


ATTENTION = {
    "rank": "rank of T",
    "null_simplex": "free directions",
    "distance": "farthest distribution",
    "width_largest": "interval of the largest",
    "correlation": "raw and effective",
}


def show_attention(frame: "DataFrame", name: str) -> None:
    """Print by layer, as means over heads and samples, the freedom of a row of weights and the first token's share, raw and effective."""
    from rich.console import Console
    from rich.table import Table

    from rankfall.identity.attention_identity.shown import WHOLE, exact
    from rankfall.report.selection import select

    part = exact(select(frame, WHOLE))
    part = part[part.tokens == part.tokens.max()]
    title = f"{name}: attention weights at {part.tokens.iloc[0]} tokens, mean over heads and samples"
    note = "farthest distribution: half the sum of absolute differences; last two: share of weight on the first token"
    table = Table(title=clean(title), title_justify="left", caption=note, caption_justify="left")
    for column in ("layer", *ATTENTION.values(), "first, raw", "first, effective"):
        table.add_column(column, justify="right")
    for layer, rows in part.groupby("layer"):
        mean = rows.groupby(["quantity", rows.kind.fillna("")]).value.mean()
        keys = [*((quantity, "") for quantity in ATTENTION), ("share", "first"), ("effective_share", "first")]
        values = [mean.get(key) for key in keys]
        table.add_row(str(layer), *("" if value is None or value != value else f"{value:.3g}" for value in values))
    Console().print(table)


# Measure -> function that prints its table, and its figures. A measure receives those options of the command that it accepts.
PARTS: "dict[str, tuple[Callable[[DataFrame, str], None] | None, tuple[str, ...]]]" = {
    "model_attention_identity": (show_attention, ("model_attention_identity", "effective_attention")),
    "model_token_identity": (show_tokens, ("model_token_identity",)),
    "model_attribution": (None, ("model_attribution",)),  # its caption has the numbers
}
