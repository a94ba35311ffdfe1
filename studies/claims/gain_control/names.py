NAME = "gain_control"
COSINE, STRONG = "cosine of two tokens, by layer", "cosine of two tokens at beta 3, by layer"
