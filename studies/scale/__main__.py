"""Run the study: python -m studies.scale --size tenth."""

from studies.common import main

main(__package__ or "studies.scale")
