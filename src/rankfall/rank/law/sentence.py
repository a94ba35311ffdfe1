"""Sentence on the size of the residual."""

from rankfall.annotations import DataFrame
from rankfall.report.labels import many
from rankfall.report.page.question import Question, say_range
from rankfall.report.settings import Setting
from rankfall.report.style import power


def say_law(rows: DataFrame, setting: Setting, settings: int) -> str:
    text = f"after {many(setting.depth, 'layer')} the geometric mean of the residual over samples is largest in"
    return say_range(rows, setting, settings, number="log_residual", text=text, write=power)


SENTENCES = (Question("How small does the residual become?", ("log_residual",), say_law, place=60),)
