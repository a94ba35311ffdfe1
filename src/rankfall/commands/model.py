"""Measure one Hugging Face model and write a table by layer and a figure."""

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.report.labels import AT_FLOOR, write_residual

if TYPE_CHECKING:
    from pandas import DataFrame

VARIANTS = ("SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP")

ARGUMENTS = """
NAME                            hub name, folder, model type (bert, gpt2, ...), or minilm, rxnmapper, smollm2
--phase init|pretrained         default: pretrained for a folder or a package, else init
--revision COMMIT               commit of the hub, or digest of a folder's weights
--quantise FORMAT               round pretrained matrices to a format of GGUF, e.g. Q4_1
--set KEY=VALUE                 change the config (phase init), e.g. num_hidden_layers=6 (repeatable)
--seeds N                       initialisations, phase init (default: 2)
--samples N                     texts (default: 8)
--study rank|identity           study to measure: see docs/models.md, docs/identity.md (default: rank)
--sentences N                   identity: texts to train, validate and test maps on; default as in a configuration
--tokens N                      identity: tokens of each text whose own share is measured; default as in a configuration
--length N                      tokens of a text; default 128, of rxnmapper 50
--text TEXT                     topics, reactions, wiki_bio, a text file, zipf, random; pictures or a folder for vision (default: topics)
--definition clean|published    definition of the variants: see docs/models.md (default: clean)
--variants NAME...              default: all that the model has
--dtype float32|float64         number format of the forward pass (default: float64)
--stream                        fetch weights layer by layer: for models larger than memory
--out FOLDER                    folder for table and picture; default results/models/NAME
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.measure.models import make_request
    from rankfall.models.source import ModelSource, usual_length, usual_phase
    from rankfall.models.subject import rows_of_subjects
    from rankfall.models.texts import Texts
    from rankfall.rank.models import figure as models
    from rankfall.rank.residuals.models import NORMS, residual_rows
    from rankfall.report import style, tables
    from rankfall.report.conform import conform
    from rankfall.report.labels import short

    phase = args.phase or usual_phase(args.name)
    config = dict(_parse_setting(text) for text in args.set)
    out = args.out or Path("results") / "models" / short(args.name)
    if args.study == "identity":
        return measure_identity(args, phase, config, out)
    source, texts = (
        ModelSource(args.name, phase, args.revision, args.stream, config, args.quantise),
        Texts(args.text, args.samples, args.length or usual_length(args.name)),
    )
    variants = tuple(args.variants) or None
    request = make_request(source, texts, variants=variants, definition=args.definition, dtype=args.dtype)
    assert request is not None
    rows = rows_of_subjects(
        request, range(args.seeds), lambda subject: residual_rows(subject, NORMS, spectrum_samples=4, parts=True), print
    )
    data = conform("model_residuals", rows)
    frame = data.to_pandas()
    show(frame, request.source.name)
    tables.write("model_residuals", rows, out / "model_residuals.parquet")
    picture = models(lambda name: frame)
    style.save(picture, out / "residuals.png", out / "residuals.rst")
    print(f"{picture.caption}\nwritten to {out}/: model_residuals.parquet, residuals.png, .pdf, .svg, .csv")
    return 0


def _parse_setting(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE, with the value as YAML."""
    from rankfall.errors import RankfallError
    from rankfall.yaml_text import load_value

    key, separator, value = text.partition("=")
    if not separator:
        raise RankfallError(f"--set {text!r}: write KEY=VALUE")
    return key, load_value(value, f"--set {key}")


def print_by_layer(title: str, note: str, texts: "DataFrame") -> None:
    """Print a table of texts by layer with a title and a note below it."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", caption=note, caption_justify="left")
    for column in ("layer", *texts):
        table.add_column(column, justify="right")
    for layer, *row in texts.fillna("").itertuples(name=None):
        table.add_row(str(layer), *row)
    Console().print(table)


def show(frame: "DataFrame", name: str) -> None:
    """Print a table by layer: means over seeds and samples, the deviation between seeds, and marks at values that are rounding noise."""
    from rankfall.rank.models import summary
    from rankfall.rank.residuals.shown import MODEL_RESIDUAL as RESIDUAL
    from rankfall.report.selection import select

    chosen = select(frame, RESIDUAL)
    first, seeds, lines = chosen.iloc[0], chosen.seed.nunique(), summary(chosen)
    title = (
        f"{name} ({first.model_type}, {first.phase}, {first.layers} layers, width {first.width}; {first.text}, "
        f"{chosen['sample'].nunique()} x {first.length} tokens, {first['dtype']}): relative residual"
    )
    texts = lines.assign(text=[_cell(row, seeds > 1) for row in lines.itertuples()]).pivot(
        index="layer", columns="variant", values="text"
    )
    note = "floor: rounding noise; ~: in most samples; ± deviation between seeds"
    print_by_layer(title, note, texts[[variant for variant in VARIANTS if variant in texts]])
    for line in describe_parts(frame):
        print(line)


def describe_parts(frame: "DataFrame") -> list[str]:
    """Return lines that say what the last layer of the whole model keeps without the first token and without the largest channels."""
    from rankfall.rank.residuals.models import WITHOUT_FIRST, WITHOUT_LARGEST

    last = frame[(frame.variant == "transformer") & (frame.layer == frame.layer.max())]
    lines = []
    for metric, left_out in ((WITHOUT_FIRST, "the first token"), (WITHOUT_LARGEST, "the three largest channels")):
        values = last[last.metric == metric]["value"].dropna()
        if len(values):
            lines.append(f"the last layer of the whole model keeps {write_residual(values.mean())} without {left_out}")
    return lines


def _cell(row: Any, spread: bool) -> str:
    """Write a residual for the table. `spread`: whether to write the deviation between seeds."""
    if row.mean != row.mean:
        return "none"  # the state is beyond the range of its format
    value = write_residual(row.mean, noise=row.floor)
    if row.floor > 0.5 and value != AT_FLOOR:
        return f"~{value}"
    return f"{value} ± {row.seeds:.3f}" if spread and row.mean >= 0.01 else value


def measure_identity(args: argparse.Namespace, phase: str, config: dict[str, Any], out: Path) -> int:
    """Measure the parts of the study one after the other and write each as soon as it is measured."""
    from rankfall import components
    from rankfall.measure.context import Context
    from rankfall.models.source import usual_length
    from rankfall.report import style, tables

    options, length = {"phase": phase, "config": config, "model": args.name}, args.length or usual_length(args.name)
    names = ("revision", "quantise", "seeds", "text", "samples", "sentences", "length", "tokens", "variants")
    options |= {name: value for name in names if (value := getattr(args, name)) is not None}
    options |= {"length": length, "lengths": [length]}
    for name, (show, figures) in PARTS.items():
        measure = components.load("measure", name)
        accepted = inspect.signature(measure).parameters
        rows = measure(Context(), **{option: value for option, value in options.items() if option in accepted})
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
    from rankfall.identity.token_identity.figure import MAPS, select_own
    from rankfall.identity.token_identity.shown import NEAREST
    from rankfall.report.selection import select

    part = select_own(select(frame, NEAREST))
    mean = part.groupby(["layer", "variant", "map"])[["rate", "low", "high"]].mean()
    texts = mean.apply(lambda row: f"{row.rate:.3f} ({row.low:.2f} to {row.high:.2f})", axis=1).unstack(
        ["variant", "map"]
    )
    texts = texts.reindex(columns=[(variant, kind) for variant in sorted(part.variant.unique()) for kind in MAPS])
    title = f"{name}: share of tokens whose own embedding is the nearest in the sentence, by cosine"
    print_by_layer(title, "95% intervals over sentences", texts.set_axis([": ".join(key) for key in texts], axis=1))


ATTENTION = {
    "rank": "rank of T",
    "null_simplex": "free directions",
    "distance": "farthest distribution",
    "width_largest": "interval of the largest",
    "correlation": "raw and effective",
}


def show_attention(frame: "DataFrame", name: str) -> None:
    """Print by layer, as means over heads and samples, the freedom of a row of weights and the first token's share, raw and effective."""
    from rankfall.identity.attention_identity.shown import WHOLE, exact
    from rankfall.report.selection import select

    part = exact(select(frame, WHOLE))
    part = part[part.tokens == part.tokens.max()]
    keys = [*((quantity, "") for quantity in ATTENTION), ("share", "first"), ("effective_share", "first")]
    mean = part.assign(kind=part.kind.fillna("")).groupby(["layer", "quantity", "kind"]).value.mean()
    texts = mean.dropna().map("{:.3g}".format).unstack(["quantity", "kind"]).reindex(columns=keys)
    title = f"{name}: attention weights at {part.tokens.iloc[0]} tokens, mean over heads and samples"
    note = "farthest distribution: half the sum of absolute differences; last two: share of weight on the first token"
    print_by_layer(title, note, texts.set_axis([*ATTENTION.values(), "first, raw", "first, effective"], axis=1))


# Measure -> function that prints its table, and its figures. A measure receives those options of the command that it accepts.
PARTS: "dict[str, tuple[Callable[[DataFrame, str], None] | None, tuple[str, ...]]]" = {
    "model_attention_identity": (show_attention, ("model_attention_identity", "effective_attention")),
    "model_token_identity": (show_tokens, ("model_token_identity",)),
    "model_attribution": (None, ("model_attribution",)),  # its caption has the numbers
}
