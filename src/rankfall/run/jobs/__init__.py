"""Jobs of training and measuring: looking up results, checkpoints, signals, failures."""
