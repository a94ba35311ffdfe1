"""Results of the probe published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["position/probe/published.csv"]
PUBLISHED = read_published(__file__)
