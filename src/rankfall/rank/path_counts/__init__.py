"""Number of paths of each length."""
