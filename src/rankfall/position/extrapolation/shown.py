"""Declare the table `extrapolation` and what is shown of it: masked language models on texts longer or shorter than those of training.

The figure: masked accuracy at lengths other than the trained one, one line per architecture, with its band over seeds.
"""

import math
from typing import Any, Literal

from rankfall.annotations import DataFrame, Read, Series
from rankfall.errors import RankfallError
from rankfall.report.captions import describe_ends, describe_lines, describe_missing
from rankfall.report.colours import CHANCE
from rankfall.report.headlines import Headline, plain
from rankfall.report.labels import join
from rankfall.report.lines import POSITIVE, SHARE, draw_panels, legend_below, panels_of, summary
from rankfall.report.looks import label
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.page.question import ask_range, percent
from rankfall.report.published_numbers import read_published
from rankfall.report.ranking import say_span
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import chances, choose, deepest
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "extrapolation",
        "each cell and tested length",
        """
        trained_length int [tokens]: length of the windows in training, without sentinels
        length int [tokens]: length of the windows here, without sentinels
        times float: the tested length in trained lengths
        targets int: hidden tokens that were asked for; 0: the network cannot run (see refused)
        accuracy float?: share of the hidden tokens that are found, of the same held-out text at every length; null: see refused
        loss float? [nats]: mean loss over the hidden tokens; null: see refused
        accuracy_trained float? nan: accuracy at the trained length over exactly these targets; null: the network cannot run
        loss_trained float? [nats] nan: loss at the trained length over exactly these targets; null: the network cannot run
        kept float?: accuracy / accuracy_trained; null: see value_reason
        value_reason text?: why nothing is said to be kept: no accuracy here, or none at the trained length; else empty
        chance float nan: accuracy of always naming the most frequent word of the training text
        refused text: why there is no accuracy; empty otherwise
        """,
        key="times",
    )


def compute_kept_by_chance(table: DataFrame) -> Series:
    """Return the share of the accuracy at the trained length that naming the most frequent word reaches."""
    return table.chance / table.accuracy_trained.where(table.accuracy_trained > 0)


LONGER = 4.0  # in trained lengths


def longer(table: DataFrame) -> DataFrame:
    away = (table.times / LONGER).astype(float).map(lambda times: abs(math.log(times)))
    nearest = table[away == away.groupby(table.key).transform("min")]
    # Of lengths equally near, such as 2 and 8, the longer.
    return nearest[nearest.times == nearest.groupby("key").times.transform("max")]


HEADLINES = (
    Headline(
        "kept",
        "accuracy kept on longer text",
        "accuracy on text 4 times as long as in training (or the tested length nearest to that), over that at the trained length",
        ("times", "kept"),
        longer,
        lambda rows: plain(rows, "kept", rows.refused.fillna(""), chance=compute_kept_by_chance(rows)),
        first="only trained",
        beside={"chance": "what is kept by always naming the most frequent word"},
        place=30,
    ),
)


CHARTS = (
    Chart(
        "extrapolation",
        "Accuracy on longer text",
        "Accuracy of filling in masked tokens at a multiple of the trained length, as a share of that at the trained length.",
        "times",
        "kept",
        "length of the text, as a multiple of the trained length",
        "share of the accuracy kept",
        choose=NETWORK,
        within=POSITIVE,
        beside=(Level("chance", "kept_by_chance"),),
        derive={"kept_by_chance": compute_kept_by_chance},
        place=30,
    ),
)


SENTENCES = (
    ask_range(
        "What happens on longer text?",
        "kept",
        "at about 4 times the trained length most accuracy is kept by",
        percent,
        place=90,
    ),
)


DATA = ["position/extrapolation/published.csv"]
PUBLISHED = read_published(__file__)


LABELS = {"accuracy": "masked accuracy", "kept": "share of masked\naccuracy kept", "loss": "masked loss (nats)"}


def figure(
    read: Read,
    *,
    task: str | None = None,
    training: str | None = None,
    quantity: Literal["accuracy", "kept", "loss"] = "accuracy",
    panels: dict[str, list[str]] = {},
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the deepest networks by length.

    `quantity`: accuracy, its share of that at the trained length, or loss. `panels`: {title: [architectures]}; by default, one panel has
    all architectures of the task and training that have the most cells. `where`: only these rows, by any column.
    """
    requested = {
        "task": task,
        "training": training,
        "architecture": [name for names in panels.values() for name in names],
    }
    table, whole, (task, training) = choose(read("extrapolation"), "extrapolation", where, **requested)
    shown = panels_of(table, "extrapolation", panels)
    table = deepest(table, "extrapolation", ["architecture"])
    drawn = table[table[quantity].notna()]
    if drawn.empty:
        raise RankfallError(f"figure extrapolation: no network of {task} runs at any length that was tested")
    lengths = [int(length) for length in sorted(table.length.unique())]
    trained = sorted(drawn.trained_length.unique())
    grid = draw_panels(shown, drawn, "length", quantity, bounds=SHARE if quantity == "accuracy" else POSITIVE)
    for length in trained:
        grid.refline(x=length, color="#bbbbbb", linestyle="-", label="trained length", zorder=1)
    guesses = chances(drawn) if quantity == "accuracy" else []
    guess = say_span(guesses, "{:.3f}".format)
    if guess and " to " not in guess:
        grid.refline(y=guesses[0], color=CHANCE, linestyle="--", label="chance")
    grid.set(xscale="log", xlabel="length of the tested windows (tokens)", ylabel=LABELS[quantity])
    for panel in grid.axes.flat:
        panel.set_xticks(lengths, [str(length) for length in lengths])
        panel.set_xticks([], minor=True)
    legend_below(grid)
    chance = f" Chance is {guess}." if guess else ""
    text = (
        f"{' '.join(LABELS[quantity].split()).capitalize()} on held-out text of {label(task)}, by the length of the text: "
        f"{describe_lines(drawn, ['architecture'])}. Networks were trained on {join(f'{length:g}' for length in trained)} tokens."
        f"{describe_finding(drawn, quantity)}{chance}{describe_missing(table, ['architecture'], quantity, whole)}"
    )
    points = summary(drawn, ["architecture", "length"], quantity)
    refused = table[table.refused != ""].groupby(["architecture", "length"]).refused.first().reset_index()
    return Picture(grid.figure, text, points.merge(refused, how="outer", on=["architecture", "length"]))


def describe_finding(drawn: DataFrame, quantity: str) -> str:
    """Write the lowest and highest mean at the trained length, and at the longest tested length."""
    trained, longest = drawn.trained_length.max(), drawn.length.max()
    lengths = (longest,) if quantity == "kept" else (trained, longest)  # at the trained length all is kept
    ends = [(length, drawn[drawn.length == length]) for length in dict.fromkeys(lengths)]
    return "".join(f" At {at:g} tokens: {describe_ends(rows, quantity, 3)}." for at, rows in ends if len(rows))
