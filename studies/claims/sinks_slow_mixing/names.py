KEPT = "relative residual of the other tokens, by score of the first token"
REACHED = "share of a change that is in other tokens, by score of the first token"
DRAWN = "attention on the first token, by score of the first token"
LEAST = 1e-13  # a relative residual below this is rounding
