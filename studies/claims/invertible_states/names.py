FOUND = "share of tokens found, by layer"
NEAREST = "log10 of the smallest distance of two words' states over their size, by layer"
