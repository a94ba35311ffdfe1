"""Verdicts on predictors, by thresholds that were fixed before any network of the study was trained."""

import math

from studies.prediction.prediction_scores.rows import MARGIN, NOTHING

LEVEL = 0.05
FEWEST = 20  # of the architectures that count
FEWEST_BESIDE = 3  # of architectures with the better, and with the worse, network of a pair
PREDICTS, USELESS, UNDECIDED = "predicts", "does not predict", "undecided"
ADDS, NO_GAIN = "adds", "adds nothing"


def enough(architectures: int, beside: int) -> bool:
    """Return whether an interval over so many architectures may decide. With fewer it is too narrow: noise would seem to predict in one
    table of ten with 12 architectures, in half of them with 4, and in as many if a single architecture trains."""
    return architectures >= FEWEST and beside >= FEWEST_BESIDE


def of_alone(statistic: str, low_of_all: float, high: float) -> str:
    """Return the verdict on a model of one predictor. `low_of_all` is the lower end of an interval that holds for all predictors at once,
    and `high` is the upper end of its own interval."""
    if math.isnan(low_of_all) or math.isnan(high):
        return UNDECIDED
    if low_of_all > NOTHING[statistic]:
        return PREDICTS
    return USELESS if high < NOTHING[statistic] + MARGIN[statistic] else UNDECIDED


def of_gain(statistic: str, low_of_all: float, high: float) -> str:
    """Return the verdict on what a predictor adds to a null model."""
    if math.isnan(low_of_all) or math.isnan(high):
        return UNDECIDED
    if low_of_all > 0:
        return ADDS
    return NO_GAIN if high < MARGIN[statistic] else UNDECIDED
