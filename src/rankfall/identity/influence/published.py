"""Influences of positions published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["identity/influence/published.csv"]
PUBLISHED = read_published(__file__)
