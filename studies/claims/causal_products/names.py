LEFT = "log10 of the last row's share outside the first token, by layer"
RATE = "log10 of the factor a layer in the second half, by network"
