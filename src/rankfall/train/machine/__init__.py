"""Training by the engine in `engine/` (the package thousandfold): cells as its members, and its check against autograd."""
