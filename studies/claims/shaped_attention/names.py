KEPT = "relative residual, by layer"
LEAST = 1e-13
