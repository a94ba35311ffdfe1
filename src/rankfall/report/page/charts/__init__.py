"""The interactive charts of the page, as data, a file a study. A chart is there where its table is."""

from rankfall.report.page.charts._chart import MENUS, Chart
from rankfall.report.page.charts.identity import IDENTITY
from rankfall.report.page.charts.position import POSITION
from rankfall.report.page.charts.rank import RANK
from rankfall.report.page.charts.use import USE

CHARTS = (*RANK, *POSITION, *IDENTITY, *USE)

__all__ = ["CHARTS", "MENUS", "Chart"]
