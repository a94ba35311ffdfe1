LOST, CURED = "width_collapse", "width_collapse_cured"
FOURTH = "stable rank of X X^T after layer {}, by tokens"
USUAL = "stable rank of X after layer {}, by tokens"
WEIGHTS = ("independent scores", "queries and keys")
MASKS = ("every token", "earlier tokens")
