"""Declare the table `prediction` and its chart: each network at birth, and its outcome after training."""

from rankfall import Chart, Column, Table, declare_table
from studies.prediction.prediction.rows import BIRTH, PARTS, column


def columns() -> Table:
    """Declare the table: one row per counted network, trained at the learning rate that the rule chose."""
    return declare_table(
        "prediction",
        "each task, architecture, depth and seed",
        """
        task text: the task's name in the config
        architecture text: the architecture's name in the config, and its variant where the grid sets parts of it
        depth int: number of blocks
        seed int: of data and initial values: the same for the network at birth and trained
        fold int: the part of the architectures that is left out together with this one
        lr float: the learning rate, chosen for task, architecture and depth on seeds that do not count here
        parameters float?: numbers that the network learns; null: not measured
        accuracy float?: test accuracy after the budget; null: diverged
        over_chance float?: (accuracy - chance) / (best - chance), best: `attainable` of cells, 1 where it is not known or is chance;
            null: diverged
        threshold float: of accuracy over chance: from there on a network trains
        trains bool: whether accuracy over chance is at the threshold after the budget
        fate text: trained; slow: below the threshold; stuck: below a fifth of it; diverged
        steps float? [steps]: steps until the threshold is first reached; null: never
        largest_depth float: the largest depth at which half of the seeds of this task and architecture train; 0: none
        """,
        (
            Column(
                part,
                "text",
                f"of the architecture: {meaning.partition(';')[0]}; null: nothing reads it",
                nullable=True,
            )
            for part, meaning in PARTS.items()
        ),
        (
            Column(
                column(name),
                "float",
                f"before training: {meaning} (from {source}); null: there is none",
                nullable=True,
            )
            for name, (source, meaning) in BIRTH.items()
        ),
        key="task architecture depth seed",
        cells=False,
    )


CHARTS = (
    Chart(
        "prediction",
        "What became of networks, by depth",
        "Accuracy over chance after a fixed budget, at the learning rate that the rule chose: 0 is what a guess is worth, 1 all right.",
        "depth",
        "over_chance",
        "depth",
        "accuracy over chance",
        line="task",
        choose=("architecture",),
        within=(-1.0, 1.0),
        place=190,
        study="use",
    ),
)
