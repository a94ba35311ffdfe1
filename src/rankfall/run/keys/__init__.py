"""Keys: digests of the code and files that a number depends on. Computing them reads code and runs none."""
