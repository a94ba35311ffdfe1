"""Names that the experiment and the rule share."""

NAME = "norm_equilibria"
RANK = "rank after the layers, by rank of the equilibrium"
OTHERS = "rank after the layers, by value map (0 identity, 1 orthogonal, 2 random)"
MOVED = "log10 of how far tokens have moved, by rank of the equilibrium"
EXACT, DISTURBED = "exact start", "start disturbed by 1e-6"
