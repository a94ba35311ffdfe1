"""MLPs: the part of a block that acts on each token alone."""
