"""Run the study: python -m studies.growth --size tenth."""

from studies.common import main

main(__package__ or "studies.growth")
