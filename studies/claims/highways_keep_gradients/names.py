NAME = "highways_keep_gradients"
PASSED = "log10 of the gradient at the input over that at the last state, by layers"
APART = "log10 of the relative residual of the last state, by layers"
POST, HIGHWAY, DEEPNORM = "post-norm", "highway", "DeepNorm"
