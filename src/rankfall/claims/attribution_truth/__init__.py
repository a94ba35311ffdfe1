"""Which attribution is right: on networks made by hand, whose dependence on each token is known exactly."""
