FREE, KEPT, EQUAL = "free_streams_explode", "stochastic_streams_keep_gain", "stochastic_streams_become_equal"
GAIN, APART = "log10 of the gain of the product, by layers", "log10 of what streams differ by, by layers"
RATE = "decades a map that the product grows in the long run, by d"
OUT = "log10 of what streams differ by after a layer, by log10 before"
DEVIATIONS = (0.01, 0.03, 0.1, 0.3)
STOCHASTIC = {"random": (0.0, 20), "near the identity": (4.0, 20), "random, one round": (0.0, 1)}
