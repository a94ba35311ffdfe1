"""Run the study: python -m studies.warning --size tenth."""

from studies.common import main

main(__package__ or "studies.warning")
