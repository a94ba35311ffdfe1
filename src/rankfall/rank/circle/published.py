"""Numbers on the circle published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["rank/circle/published.csv"]
PUBLISHED = read_published(__file__)
