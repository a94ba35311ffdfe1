"""Path lengths published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["rank/path_counts/published.csv"]
PUBLISHED = read_published(__file__)
