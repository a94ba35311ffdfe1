"""Keys: digests of the code and files that a number depends on, computed by reading code, not by running it."""
