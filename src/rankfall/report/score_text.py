"""The scorecard as text: numbers in the format of figures, lines for a terminal, and a LaTeX table (booktabs); other tables as LaTeX."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError, suggest
from rankfall.report.headlines import Headline, headlines
from rankfall.report.labels import AT_FLOOR, many, span_counts, write_float, write_residual
from rankfall.report.looks import label
from rankfall.report.part_numbers import is_missing
from rankfall.report.ranking import say_span
from rankfall.report.settings import Setting, find_setting, rows_at, settings_in

if TYPE_CHECKING:
    from pyarrow import Table

ABSENT = "–"
CHANCE = "(chance)"
HEADING = 14  # letters of a line of a heading in LaTeX
ACROSS = 7  # numbers of a LaTeX table that stand side by side; more run down
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # no wider than the text
SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}",
    "|": r"\textbar{}", "\n": " ",
}  # fmt: skip


def name_row(row: Series) -> str:
    """Return the label of an architecture, with its variant if it has several."""
    return f"{label(row.architecture)} ({row.variant})" if row.variant else label(row.architecture)


def write_score(row: Series, headline: Headline, between: str = "±") -> str:
    """Write a number with its deviation, if visible, and its share of the attainable accuracy in brackets.

    A dash: it was measured and does not exist. Empty: it was not measured. `floor`: rounding noise in every sample.
    """
    value, deviation = row[headline.name], row[f"{headline.name}_deviation"]
    if is_missing(value):
        return "" if is_missing(row[f"{headline.name}_{'at' if headline.components else 'of'}"]) else ABSENT
    share = share_of_attainable(row, headline)
    text = write_value(row, headline)
    if not is_missing(deviation) and text != AT_FLOOR:
        visible = "e" in text or f"{deviation:.{headline.digits}f}".strip("0.")
        text += f"{between}{write_float(deviation, headline.digits, value)}" if visible else ""
    return text if share is None else f"{text} ({share:.0%})"


def is_equal(rows: DataFrame, headline: Headline) -> bool:
    """Return whether all of several architectures have the same number, which says nothing about them."""
    complete = len(rows) > 1 and rows[headline.name].notna().all()
    return complete and len({write_score(row, headline) for _, row in rows.iterrows()}) == 1


def share_of_attainable(row: Series, headline: Headline) -> float | None:
    """Return the share of the accuracy attainable with its mask that a row has reached; None if the mask limits nothing or is unknown."""
    if "attainable" not in headline.beside:
        return None
    best, value = row[f"{headline.name}_attainable"], row[headline.name]
    return None if is_missing(best) or is_missing(value) or not 0 < best < 1 else float(value / best)


def list_attainable(rows: DataFrame, shown: Sequence[Headline], *, titles: bool = False) -> Iterator[str]:
    """Yield notes on the meaning of the shares in brackets. `titles`: columns are named by their titles."""
    for headline in shown:
        below: dict[str, list[str]] = {}
        for _, row in rows.iterrows():
            if share_of_attainable(row, headline) is not None:
                best = write_float(row[f"{headline.name}_attainable"], headline.digits)
                below.setdefault(best, []).append(name_row(row))
        column = headline.title if titles else headline.name
        for best, names in below.items():
            yield f"{column}: in brackets, the share of the {best} that the mask leaves attainable: {', '.join(names)}"


def write_value(row: Series, headline: Headline) -> str:
    """Write a number of the scorecard without its deviation."""
    value = row[headline.name]
    if "floor" in headline.beside:
        noise = row[f"{headline.name}_floor"]
        return write_residual(value, headline.digits, 0.0 if is_missing(noise) else noise)
    return write_float(value, headline.digits)


def write_chance(rows: DataFrame, headline: Headline) -> str:
    """Write the chance level of these rows; empty if it is unknown."""
    chances = rows[f"{headline.name}_chance"].dropna() if "chance" in headline.beside else ()
    return say_span(chances, partial(write_float, digits=headline.digits))


def choose(scores: DataFrame, columns: Sequence[str], setting: str, where: str) -> tuple[Setting, list[Headline]]:
    """Return the setting with this label (by default the one with most of these numbers), and its headlines: those in `columns`, or all."""
    by_name = {headline.name: headline for headline in headlines()}
    for name in columns:
        if name not in by_name:
            raise RankfallError(
                f"{where}: the scorecard has no number {name!r}{suggest(name, by_name)}\nfix: choose from {', '.join(by_name)}"
            )
    if not len(scores):
        raise RankfallError(f"{where}: the scorecard has no row")
    chosen = [by_name[name] for name in dict.fromkeys(columns)] or list(by_name.values())
    of_networks = [headline for headline in chosen if not headline.components] or chosen
    at = find_setting(scores, setting, where) if setting else settings_in(scores, of_networks)[0]
    rows = rows_at(scores, at)
    return at, [headline for headline in chosen if columns or rows[headline.name].notna().any()]


def score_grid(rows: DataFrame, shown: Sequence[Headline], between: str = "±") -> DataFrame:
    """Return the numbers of architectures as text, with a last row for their chance if any number has one."""
    from pandas import DataFrame

    texts = {headline.name: [write_score(row, headline, between) for _, row in rows.iterrows()] for headline in shown}
    grid = DataFrame(texts, index=[name_row(row) for _, row in rows.iterrows()])
    chances = [write_chance(rows, headline) for headline in shown]
    if any(chances):
        grid.loc[CHANCE] = chances
    return grid


def as_lines(scores: DataFrame, columns: Sequence[str] = (), setting: str = "") -> Iterator[str]:
    """Yield lines for one setting or for all, with a line per architecture and a column per number."""
    settings = settings_in(scores)
    meanings: dict[str, str] = {}
    count = many(len(settings), "setting")
    yield f"scorecard: {len(scores)} rows at {count}; only numbers of one setting are comparable"
    for at in [choose(scores, columns, setting, "--setting")[0]] if setting else settings:
        _, shown = choose(scores, columns, at.label, "--columns")
        meanings |= {headline.name: headline.meaning for headline in shown}
        rows = rows_at(scores, at)
        yield ""
        yield f"{at.label} ({at.sizes}); {say_seeds(rows, shown)}"
        grid = score_grid(rows, shown)
        written = grid.to_string(line_width=158).splitlines() if shown else grid.index
        yield from (f"  {line}" for line in written if line.strip())
        yield from (f"  {note}" for note in [*notes(rows), *list_attainable(rows, shown)])
    yield ""
    for name, meaning in meanings.items():
        yield from wrap(f"{name}: {meaning}", 158, initial_indent="  ", subsequent_indent="    ")
    yield f"{ABSENT} measured, but the number does not exist (see column NAME_reason); empty: not measured; {AT_FLOOR}: rounding noise"
    yield "`--setting LABEL` and `--columns a,b` select, `--latex` writes a table for a paper, `--csv` prints all columns"


def notes(rows: DataFrame) -> Iterator[str]:
    """Yield notes on lost seeds and on means over several kinds of processors."""
    columns = [f"{headline.name}_lost" for headline in headlines() if not headline.components]
    lost = []
    for _, row in rows.iterrows():
        reasons = dict.fromkeys(row[column] for column in columns if row[column])
        lost += [f"{name_row(row)}: {why}" for why in reasons]
    yield from dict.fromkeys(lost)
    mixed = rows[rows.processors.notna()]
    yield from (f"{name_row(row)}: means over seeds {row.processors}" for _, row in mixed.iterrows())


def say_seeds(rows: DataFrame, shown: Sequence[Headline]) -> str:
    """Write how many seeds, or readings of a clock, the numbers are means of."""
    networks = [headline for headline in shown if not headline.components]
    counts = [
        count
        for headline in networks
        if headline.counted == "seed"
        for count in rows[f"{headline.name}_seeds"].dropna()
    ]
    phrases = [f"mean ± deviation over {span_counts(counts, 'seed')}"] * bool(counts)
    for headline in networks:
        span = span_counts(rows[f"{headline.name}_seeds"].dropna(), headline.counted)
        phrases += [f"{headline.title}: median ± deviation over {span}"] * (headline.counted != "seed" and bool(span))
    return "; ".join(phrases) or "no number of networks"


def as_latex(
    scores: DataFrame, columns: Sequence[str] = (), setting: str = "", architectures: Sequence[str] = ()
) -> str:
    """Return a LaTeX table (booktabs) of one setting, with rows in the order of `architectures`, those of the configuration. Comments above
    it have what its caption needs. Without `columns`, numbers that are the same for all are in a comment."""
    at, shown = choose(scores, columns, setting, "--latex")
    rows = rows_at(scores, at)
    equal = [headline for headline in shown if not columns and is_equal(rows, headline)]
    shown = [headline for headline in shown if headline not in equal]
    places = {name: place for place, name in enumerate(architectures)}
    rows = rows.sort_values("architecture", key=lambda names: names.map(places), kind="stable") if places else rows
    comments = [
        f"{at.label} ({at.sizes}); {say_seeds(rows, shown)}",
        "A deviation that rounds to zero is left out; floor: rounding noise; --: measured, but there is no number",
        *notes(rows),
        *list_attainable(rows, shown, titles=True),
        *(f"{headline.title}: {write_score(rows.iloc[0], headline)} for all" for headline in equal),
        f"{len(shown)} numbers; `--columns A,B` chooses: {','.join(headline.name for headline in shown)}",
        r"\usepackage{booktabs,graphicx}",
    ]
    grid = score_grid(rows, shown, r" \pm ").rename(index=escape)
    grid = grid.map(lambda text: math(text.replace(" to ", "$--$")))
    if len(shown) > ACROSS:
        grid.columns = [escape(headline.title) for headline in shown]
        head, body = ["", *grid.index], [write_line(line) for line in grid.T.itertuples()]
    else:
        heads = [r"\\".join(map(escape, wrap(headline.title, HEADING))) for headline in shown]
        head = ["architecture", *(rf"\shortstack[r]{{{head}}}" for head in heads)]
        body = [write_line(line) for line in grid.itertuples()]
        body[len(rows) :] = [line for chances in body[len(rows) :] for line in (r"\midrule", chances)]
    return "\n".join(
        [*(f"% {' '.join(note.split())}" for note in comments), *write_tabular(head, body, "l" + "r" * (len(head) - 1))]
    )


def rows_as_latex(data: "Table") -> str:
    """Return a LaTeX table (booktabs) of all rows and columns of a table. Numbers have four digits, NaN is a dash and a null is empty."""
    body = [write_line(map(write_plain_value, row.values())) for row in data.to_pylist()]
    sides = ["r" if str(field.type) in ("int64", "double") else "l" for field in data.schema]
    head = [escape(name.replace("_", " ")) for name in data.column_names]
    return "\n".join([r"% \usepackage{booktabs,graphicx}", *write_tabular(head, body, "".join(sides))])


def write_plain_value(value: str | float | None) -> str:
    """Write the value of a cell of a table for LaTeX."""
    if isinstance(value, float):
        text = re.sub(r"e(-?)\+?0*", r"e\1", f"{value:.4g}").replace("inf", r"\infty")
        return math(text) if value == value else "--"
    return "" if value is None else escape(str(value))


def write_tabular(head: Iterable[str], body: Iterable[str], sides: str) -> list[str]:
    """Return the lines of a tabular whose columns stand on these `sides`, such as `lrr`."""
    begin = [FITTED, rf"\begin{{tabular}}{{{sides}}}", r"\toprule", write_line(head), r"\midrule"]
    return [*begin, *body, r"\bottomrule", r"\end{tabular}}", ""]


def write_line(cells: Iterable[str]) -> str:
    """Join the cells of a line. A first cell that begins with a star or a bracket would be read as an option of the line before."""
    first, *others = cells
    return " & ".join(["{}" + first if first.startswith(("*", "[")) else first, *others]) + r" \\"


def math(text: str) -> str:
    """Write a number in math mode, so that minus and ± are set as signs; `floor` and empty texts stay unchanged."""
    if text in ("", AT_FLOOR):
        return text
    if text == ABSENT:
        return "--"
    text = re.sub(r"(\S+)(e\S+)( \\pm )(\S+)\2$", r"(\1\3\4)\2", text)  # one power for a number and its deviation
    power = re.sub(r"e(-?\d+)", r" \\times 10^{\1}", text.replace(",", "{,}").replace("%", r"\%"))
    return f"${power}$"


def escape(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)
