"""Run the study: python -m studies.cause --size tenth."""

from studies.common import main

main(__package__ or "studies.cause")
