"""Checks that the declarations of users' quantities for the scorecard and the page are valid, before any work starts."""

from collections.abc import Container, Iterable

from rankfall.errors import RankfallError, describe_error, suggest
from rankfall.report.headlines import Headline, headlines
from rankfall.report.page.chart import Chart, charts
from rankfall.report.page.question import Question
from rankfall.report.published_numbers import published_numbers
from rankfall.report.quantities import STUDIES, declarations_of
from rankfall.report.schema import Table, schema

BESIDE = ("setting", "apart", "chance_of_cell")  # columns that the page adds to tables of cells


def check_own(modules: Iterable[str], filled: Container[str]) -> None:
    """Raise if a declaration names a study, a column or a headline that does not exist, or has a name that is taken. `filled` are the
    tables of the run."""
    modules = list(modules)
    try:
        tables = {module: schema(module) for module in modules if module in filled}
        numbers, drawn, asked = headlines(), charts(), declarations_of("sentence")
        list(published_numbers())
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
        raise RankfallError(
            f"the declarations of {' or '.join(modules)} cannot be read: {describe_error(error)}"
        ) from error
    for module, table in tables.items():
        if table.name != module:
            raise RankfallError(
                f"{module} calls its table {table.name!r}: a table outside the package is named by its module, {module!r}"
            )
    shown: list[Headline | Chart] = [*numbers, *drawn]
    for item in (one for one in shown if one.table in tables):
        kind = "chart" if isinstance(item, Chart) else "headline"
        if item.study not in STUDIES:
            raise RankfallError(
                f"study {item.study!r} of {kind} {item.name!r} ({item.table}) does not exist; allowed: {', '.join(STUDIES)}"
            )
        if tables[item.table].inferred:
            continue  # its columns are known when it has rows
        named = columns_of(item) if isinstance(item, Chart) else item.columns
        check_columns(f"{kind} {item.name!r}", named, tables[item.table])
    known = [headline.name for headline in numbers]
    for question in (one for one in asked if one.table in tables and isinstance(one, Question)):
        for number in question.numbers:
            if number not in known:
                hint = suggest(number, known)
                raise RankfallError(
                    f"sentence {question.name!r} ({question.table}): there is no headline {number!r}{hint}"
                )


def columns_of_table(table: str) -> list[str]:
    return [column.name for column in schema(table).columns]


def columns_of(chart: Chart) -> list[str]:
    """Return the columns of its table that a chart reads, without those that it derives."""
    named = [chart.x, chart.y, chart.line, chart.measured, *chart.choose, *chart.where, *chart.most]
    named += [level.column for level in chart.beside if level.column]
    return [name for name in named if name not in (*chart.derive, *BESIDE)]


def check_columns(what: str, named: Iterable[str], table: Table) -> None:
    known = [column.name for column in table.columns]
    for name in named:
        if name not in known:
            hint = suggest(name, known)
            raise RankfallError(f"{what}: its table {table.name} has no column {name!r}{hint}")
