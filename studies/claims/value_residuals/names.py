VALUES, OUTPUTS = "first_values_mixed", "first_values_added"
RESIDUAL = "log10 of the relative residual, by layer"
AFTER = "log10 of the residual after two layers, by log10 of that of the input"
PLAIN = "as it is"
FLOOR = 1e-13  # of a relative residual in float64, after norms
