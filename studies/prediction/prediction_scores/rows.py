"""Outcomes and statistics, with the thresholds of the study, and selections of rows by outcome and by null model."""

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


def statistic_rows(table: DataFrame, outcome: str, statistic: str, task: str = ALL) -> DataFrame:
    return table[(table.outcome == outcome) & (table.statistic == statistic) & (table.task == task)]


def select_null(rows: DataFrame, null: str) -> DataFrame:
    """Return the single row of a null model alone."""
    return rows[(rows.model == null) & (rows.over == null)]


def say_where(table: DataFrame, task: str, counted: int) -> str:
    """Say what a number is of: a task, or the mean over the tasks that have it."""
    names = [name for name in table.task.unique() if name != ALL]
    if task != ALL or len(names) == 1:
        return names[0] if task == ALL else task
    return f"mean over {len(names)} tasks" if counted == len(names) else f"mean over {counted} of {len(names)} tasks"


def by_gain(rows: DataFrame, null: str) -> DataFrame:
    """Return the rows of predictors beside a null model, the largest gain first."""
    added = rows[(rows.kind == "added") & (rows.over == null)]
    return added.sort_values(["gain", "predictor"], ascending=[False, True])
