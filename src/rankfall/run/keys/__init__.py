"""Keys: digests of the code and files that a number depends on, by reading, not by running."""
