"""`rankfall measure model NAME --study identity`: tables and pictures of what a model's states still tell about their tokens."""

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


def measure(args: argparse.Namespace, phase: str, config: dict[str, Any], out: Path) -> int:
    """One part of the study after the other; each is written as soon as it is measured."""
    from rankfall import components
    from rankfall.measures._context import Context
    from rankfall.report import style, tables

    given = {"phase": phase, "config": config, "model": args.name, "lengths": [args.length]}
    asked = ("revision", "seeds", "text", "samples", "sentences", "length", "variants")
    given |= {name: value for name in asked if (value := getattr(args, name)) is not None}
    for name, show in PARTS.items():
        found = components.load("measure", name)
        accepted = inspect.signature(found).parameters
        rows = found(Context(), **{option: value for option, value in given.items() if option in accepted})
        tables.write(name, rows, out / f"{name}.parquet")
        frame = tables.read_frame(out / f"{name}.parquet", name)
        if show is not None:
            show(frame, args.name)
        with style.applied():
            picture = components.load("figure", name)(lambda _, frame=frame: frame)
        style.save(picture, out / f"{name}.png", out / f"{name}.rst")
        print(f"{picture.caption}\nwritten to {out}/: {name}.parquet, {name}.png, {name}.pdf")
    return 0


def show_tokens(frame: "DataFrame", name: str) -> None:
    """Rates by layer within the sentence, by cosine."""
    from rich.console import Console
    from rich.table import Table

    from rankfall.report.rates import MAPS, own

    part = own(frame[(frame.candidates == "sentence") & (frame.distance == "cosine")])
    title = f"{name}: share of tokens whose own embedding is the nearest in the sentence, by cosine"
    table = Table(title=title, title_justify="left", caption="95% intervals over sentences", caption_justify="left")
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


# A measure of models has a figure of the same name; it is given those of the command's options that it has.
PARTS: "dict[str, Callable[[DataFrame, str], None] | None]" = {
    "model_token_identity": show_tokens,
    "model_attention_identity": None,  # their captions say what there is to see
    "model_attribution": None,
}
