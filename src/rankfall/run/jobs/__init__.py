"""Jobs of training and measuring: they look up results, write checkpoints, and handle signals and failures."""
