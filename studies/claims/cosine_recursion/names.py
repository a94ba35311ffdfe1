BOTH_SEE, EARLIER = "cosine_recursion", "cosine_recursion_causal"
COSINE, GAP = "cosine of two tokens, by layer", "network minus recursion where they differ most, by tokens"
