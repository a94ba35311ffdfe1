"""Run the study: python -m studies.joint --size tenth."""

from studies.common import main

main(__package__ or "studies.joint")
