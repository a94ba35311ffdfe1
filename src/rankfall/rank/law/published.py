"""Residuals without a rounding floor published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["rank/law/published.csv"]
PUBLISHED = read_published(__file__)
