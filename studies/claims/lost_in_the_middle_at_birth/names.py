RANKS = "rank correlation with the network, by layers"
OFF = "total variation distance from the network, by layers"
