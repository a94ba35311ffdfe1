"""Check the declarations of users' quantities for the scorecard and the page before any work starts."""

from collections.abc import Container, Iterable

from rankfall.errors import RankfallError, describe_error
from rankfall.report.headlines import Headline, headlines
from rankfall.report.page.chart import Chart, charts
from rankfall.report.page.question import Question
from rankfall.report.published_numbers import published_numbers
from rankfall.report.quantities import STUDIES, declarations_of
from rankfall.report.schema import schema
from rankfall.run.config.problems import problem

BESIDE = ("setting", "apart", "chance_of_cell")  # columns that the page adds to tables of cells


def check_declarations(modules: Iterable[str], filled: Container[str]) -> None:
    """Raise if a declaration names a study, a column or a headline that does not exist. `filled` are the tables of the run."""
    modules = list(modules)
    try:
        tables = {module: schema(module) for module in modules if module in filled}
        numbers, page_charts, questions = headlines(), charts(), declarations_of("sentence")
        list(published_numbers())
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
        raise RankfallError(f"{' or '.join(modules)}: a declaration cannot be read: {describe_error(error)}") from error
    for module, table in tables.items():
        if table.name != module:
            raise problem(
                module, f"calls its table {table.name!r}", hint=f"such a table is named by its module, {module!r}"
            )
    declared: list[Headline | Chart] = [*numbers, *page_charts]
    for item in (item for item in declared if item.table in tables):
        where = f"{item.table}: {'chart' if isinstance(item, Chart) else 'headline'} {item.name!r}"
        if item.study not in STUDIES:
            raise problem(where, f"study {item.study!r} does not exist", allowed=STUDIES, name=item.study)
        known = [column.name for column in tables[item.table].columns]
        for column in columns_of(item) if isinstance(item, Chart) else item.columns:
            if (
                column not in known and not tables[item.table].inferred
            ):  # the columns of an inferred table follow from its rows
                raise problem(where, f"table {item.table} has no column {column!r}", near=known, name=column)
    known = [headline.name for headline in numbers]
    for question in questions:
        for number in question.numbers if question.table in tables and isinstance(question, Question) else ():
            if number not in known:
                where = f"{question.table}: sentence {question.name!r}"
                raise problem(where, f"there is no headline {number!r}", near=known, name=number)


def columns_of_table(table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [column.name for column in schema(table).columns]


def columns_of(chart: Chart) -> list[str]:
    """Return the columns of its table that a chart reads, without those that it derives."""
    names = [chart.x, chart.y, chart.line, chart.measured, *chart.choose, *chart.where, *chart.most]
    names += [level.column for level in chart.beside if level.column]
    return [name for name in names if name not in (*chart.derive, *BESIDE)]
