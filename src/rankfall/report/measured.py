"""The rows of a table of real models that a figure draws."""

from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError


def select_models(table: DataFrame, figure: str, models: list[str] | None) -> DataFrame:
    """Of these models, or of all; an error if one was not measured."""
    there = sorted(table.model.unique())
    for model in models or []:
        if model not in there:
            raise RankfallError(
                f"figure {figure}: model {model} was not measured; there is: {', '.join(there) or 'nothing'}"
            )
    return table[table.model.isin(models)] if models else table
