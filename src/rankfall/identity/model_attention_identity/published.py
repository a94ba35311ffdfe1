"""Numbers that papers give of it."""

from rankfall.report.published_numbers import read_published

DATA = ["identity/model_attention_identity/published.csv"]
PUBLISHED = read_published(__file__)
