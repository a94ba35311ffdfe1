"""Selection of accuracy on the test set."""

TESTED = {"split": "test", "metric": "accuracy"}
