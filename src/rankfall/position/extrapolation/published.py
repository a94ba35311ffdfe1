"""Accuracies on longer text published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["position/extrapolation/published.csv"]
PUBLISHED = read_published(__file__)
