KEPT = "relative residual, by layer"
LEAST = 1e-13  # a relative residual below this is rounding
