"""The measurements of the claims' experiments."""
