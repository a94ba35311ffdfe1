"""Number of learned parameters, by part of the network."""
