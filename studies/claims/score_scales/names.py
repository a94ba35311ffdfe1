LIKE, RANDOM, BOTH = "log_n_for_cosines", "root_log_n_for_random_scores", "log_n_against_fading"
COSINE, CRITICAL = "cosine after the layer, by tokens", "critical scale over 1 / (1 - rho), by tokens"
SQUARES, OWN = (
    "sum of squared weights, by tokens",
    "share of the token itself, by scale of cosines over its critical one",
)
WRONG = "sum of squared weights at the other's scale, by tokens"
OF_CRITICAL = {"half the critical scale": 0.5, "the critical scale": 1.0, "1.5 times the critical scale": 1.5}
SHARES = {"half the critical scale": 0.5, "three quarters": 0.75, "1.5 times": 1.5, "twice": 2.0}
NOISE, SLOWER = "independent scores times log n", "cosines times sqrt(log n)"
ALONE = "noise 0"  # cosines alone
