BIAS = "log of the first item's influence over the middle one's, by layers"
FIRST = "first token's share of influence, by layers"
DECODER = "skips and norms"
NETWORKS = ("no positions", "ALiBi", "RoPE")
