"""Residuals of products of attention matrices published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["rank/chains/published.csv"]
PUBLISHED = read_published(__file__)
