"""Outcomes and statistics, with the thresholds of the study; which rows are of one outcome, and how predictors stand in them."""

from rankfall.annotations import DataFrame

AUC, TAU, SHARE = "auc", "tau", "r2"
TRAINS, HOW_WELL, STEPS, DEPTH = "trains", "over_chance", "steps", "largest_depth"
STATISTICS = {TRAINS: (AUC,), HOW_WELL: (TAU, SHARE), STEPS: (TAU,), DEPTH: (TAU,)}
MARGIN = {
    AUC: 0.02,
    TAU: 0.04,
    SHARE: 0.02,
}  # a gain below is none that matters; a rank correlation is twice an AUC, less 1
NOTHING = {AUC: 0.5, TAU: 0.0, SHARE: 0.0}  # of what knows nothing
ALL = "all"  # tasks, in the mean
NULL = "depth and parameters"
TITLES = {
    TRAINS: "whether a network trains",
    HOW_WELL: "its accuracy over chance",
    STEPS: "its steps to the threshold",
    DEPTH: "the largest depth that trains",
}
MEANS = {AUC: "AUC", TAU: "rank correlation", SHARE: "R²"}


def of(table: DataFrame, outcome: str, statistic: str, task: str = ALL) -> DataFrame:
    return table[(table.outcome == outcome) & (table.statistic == statistic) & (table.task == task)]


def null(rows: DataFrame) -> DataFrame:
    """The one row of depth and parameters."""
    return rows[rows.model == NULL]


def say_where(table: DataFrame, task: str, counted: int) -> str:
    """What a number is of: a task, or the mean over those that have it."""
    names = [name for name in table.task.unique() if name != ALL]
    if task != ALL or len(names) == 1:
        return names[0] if task == ALL else task
    return f"mean over {len(names)} tasks" if counted == len(names) else f"mean over {counted} of {len(names)} tasks"


def by_gain(rows: DataFrame) -> DataFrame:
    """The rows of predictors beside depth and parameters, the largest gain first."""
    return rows[rows.kind == "added"].sort_values(["gain", "predictor"], ascending=[False, True])
