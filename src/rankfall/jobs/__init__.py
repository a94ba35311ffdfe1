"""Jobs: what surrounds the arithmetic of training and measuring: looking up, checkpoints, signals, failures."""
