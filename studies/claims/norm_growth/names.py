VARIANCE, SIZE, AROUND = "prenorm_grows_exponentially", "prenorm_grows_linearly", "peri_norm_grows_linearly"
SQUARE, ADDED = "mean square of a state, by layer", "mean square of what layers have added, by layer"
SHARED = "Xavier, one layer's weights in all"
CURE = "Xavier, norms by 1/sqrt(l)"
STARTS = ("Xavier", "N(0, .02^2)")  # ordinary initialisations, which the sources are about
