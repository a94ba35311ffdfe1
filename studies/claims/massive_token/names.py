SHARE = "share of energy in the first direction, by length of the first token"
ENTROPY = "entropy of the spectrum, by length of the first token"
RANK = "stable rank, by length of the first token"
DRAWN = "attention on the first token, by length of the first token"
