"""Identification rates published in papers."""

from rankfall.report.published_numbers import read_published

DATA = ["identity/model_token_identity/published.csv"]
PUBLISHED = read_published(__file__)
