"""Accuracies published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["use/cells/published.csv"]
PUBLISHED = read_published(__file__)
