"""Networks at birth and their outcomes after training: the measurements before training beside the results."""
