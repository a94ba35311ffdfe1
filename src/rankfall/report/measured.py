"""Selection of the rows that a figure draws from a table of real models."""

from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError


def select_models(table: DataFrame, figure: str, models: list[str] | None) -> DataFrame:
    """Return the rows of these models, or of all if there are none; a model that was not measured is an error."""
    there = sorted(table.model.unique())
    for model in models or []:
        if model not in there:
            raise RankfallError(
                f"figure {figure}: model {model} was not measured; there is: {', '.join(there) or 'nothing'}"
            )
    return table[table.model.isin(models)] if models else table
