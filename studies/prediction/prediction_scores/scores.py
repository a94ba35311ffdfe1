"""Name the outcomes, statistics and null models of the study, select their rows, and decide about predictors.

The thresholds of verdicts were fixed before any network of the study was trained.
"""

import math

from rankfall import DataFrame

AUC, SOMERS_D, SHARE = "auc", "somers_d", "r2"
TRAINS, HOW_WELL, STEPS, DEPTH = "trains", "over_chance", "steps", "largest_depth"
STATISTICS = {TRAINS: (AUC,), HOW_WELL: (SOMERS_D, SHARE), STEPS: (SOMERS_D,), DEPTH: (SOMERS_D,)}
# Smaller gains do not matter. For outcomes 0 and 1 Somers' D is twice the AUC, less 1.
MARGIN = {AUC: 0.02, SOMERS_D: 0.04, SHARE: 0.02}
NOTHING = {AUC: 0.5, SOMERS_D: 0.0, SHARE: 0.0}  # the statistic of a model that knows nothing
ALL = "all"  # the mean over tasks
SIZE, DESIGN = "depth and parameters", "architecture and depth"
NULLS = (SIZE, DESIGN)  # null models for comparison: they know a network only without measurements
TITLES = {
    TRAINS: "whether a network trains",
    HOW_WELL: "its accuracy over chance",
    STEPS: "its steps to the threshold",
    DEPTH: "the largest depth that trains",
}
MEANS = {AUC: "AUC", SOMERS_D: "Somers' D", SHARE: "R²"}
LEVEL = 0.05  # of an interval
FEWEST = 20  # architectures that count
FEWEST_BESIDE = 3  # architectures with the better network of a pair, and with the worse
PREDICTS, USELESS, UNDECIDED = "predicts", "does not predict", "undecided"
ADDS, NO_GAIN = "adds", "adds nothing"


def statistic_rows(table: DataFrame, outcome: str, statistic: str, task: str = ALL) -> DataFrame:
    """Return the rows of one statistic of one outcome."""
    return table[(table.outcome == outcome) & (table.statistic == statistic) & (table.task == task)]


def select_null(rows: DataFrame, null: str) -> DataFrame:
    """Return the single row of a null model alone."""
    return rows[(rows.model == null) & (rows.over == null)]


def say_where(table: DataFrame, task: str, counted: int) -> str:
    """Name the task of a number, or say over how many tasks it is the mean."""
    names = [name for name in table.task.unique() if name != ALL]
    if task != ALL or len(names) == 1:
        return names[0] if task == ALL else task
    return f"mean over {len(names)} tasks" if counted == len(names) else f"mean over {counted} of {len(names)} tasks"


def by_gain(rows: DataFrame, null: str) -> DataFrame:
    """Return the rows of predictors beside a null model, the largest gain first."""
    added = rows[(rows.kind == "added") & (rows.over == null)]
    return added.sort_values(["gain", "predictor"], ascending=[False, True])


def enough(architectures: int, beside: int) -> bool:
    """Return whether an interval over so many architectures may decide. With fewer it is too narrow: noise seems to predict in one table of
    ten with 12 architectures, in half of the tables with 4, and in as many if a single architecture trains."""
    return architectures >= FEWEST and beside >= FEWEST_BESIDE


def judge_alone(statistic: str, low_of_all: float, high: float) -> str:
    """Return the verdict on a model of one predictor. `low_of_all` is the lower end of an interval that holds for all predictors at once,
    and `high` is the upper end of its own interval."""
    if math.isnan(low_of_all) or math.isnan(high):
        return UNDECIDED
    if low_of_all > NOTHING[statistic]:
        return PREDICTS
    return USELESS if high < NOTHING[statistic] + MARGIN[statistic] else UNDECIDED


def judge_gain(statistic: str, low_of_all: float, high: float) -> str:
    """Return the verdict on what a predictor adds to a null model."""
    if math.isnan(low_of_all) or math.isnan(high):
        return UNDECIDED
    if low_of_all > 0:
        return ADDS
    return NO_GAIN if high < MARGIN[statistic] else UNDECIDED
