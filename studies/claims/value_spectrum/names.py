NAME = "value_spectrum"
GAIN = "decades of the relative residual gained, by eigenvalue"
SCALED, RANDOM, NORMED = "h times the identity", "random, gain |h|", "h times the identity, norms after"
EIGENVALUES = (-3.0, -2.5, -1.5, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0)
