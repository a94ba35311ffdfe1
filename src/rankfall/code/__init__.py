"""Code as part of keys: which files a number depends on, what they hash to, and whether they are still the same."""
