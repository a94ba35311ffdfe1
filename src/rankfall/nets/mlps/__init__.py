"""MLPs: what a block does to each token alone."""
