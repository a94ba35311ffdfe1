"""Accuracies of paths published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["rank/paths/published.csv"]
PUBLISHED = read_published(__file__)
