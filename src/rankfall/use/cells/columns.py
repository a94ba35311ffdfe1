"""cells.parquet: the results of each cell."""

from rankfall.report.schema import Column, Table


def cells() -> Table:
    """Declare the table: one row per cell."""
    return Table(
        "cells",
        "a cell",
        (
            Column("steps", "int", "optimiser steps that counted", unit="steps"),
            Column(
                "train_loss",
                "float",
                "loss on the training set at the end, without dropout; NaN if untrained",
                unit="nats",
                nan=True,
            ),
            Column(
                "train_accuracy",
                "float",
                "accuracy on the training set at the end; NaN for regression, and if untrained",
                nan=True,
            ),
            Column("test_loss", "float", "loss on the test set at the end", unit="nats", nan=True),
            Column("test_accuracy", "float", "accuracy on the test set at the end; NaN for regression", nan=True),
            Column("chance", "float", "test accuracy of the best guess that never sees an input", nan=True),
            Column(
                "attainable",
                "float",
                "expected test accuracy of the best answers that are any function of their place and of the tokens that the mask lets it "
                "read, through all layers; null: not known, see `attainable_reason`",
                nullable=True,
            ),
            Column("attainable_reason", "text", "why `attainable` is not known; empty where it is"),
            Column("seconds", "float", "the cell's share of its stack's training time", unit="s", provenance=True),
            Column(
                "step_ms",
                "float",
                "its share of an optimiser step of the stack, median over epochs, without data, evaluation and checkpoints; null: "
                "fewer than 20 steps were timed",
                unit="ms",
                nullable=True,
                provenance=True,
            ),
            Column("together", "int", "networks in its stack; null: not recorded", nullable=True, provenance=True),
            Column("threads", "int", "that PyTorch had; null: not recorded", nullable=True, provenance=True),
        ),
    )
