"""What a network is used for and what it costs: how its cells ended, trained and compare with the simplest predictors."""
