"""Does what is lost at birth matter: what measurements before training tell of a network's training."""
