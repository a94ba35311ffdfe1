NAME = "exact_maps_learn_faster"
STEPS = "log10 of the steps to a mean square error of 10^-5, by learning rate"
LEFT = "log10 of the smallest mean square error, by learning rate"
SINKHORN, PERMUTATIONS, ORTHOGONAL = "Sinkhorn", "sums of permutations", "squares of orthogonal blocks"
