"""A test of whether updates that erase what they overwrite keep rank in deep networks: Su and You 2026, after Zhang et al. 2026."""
