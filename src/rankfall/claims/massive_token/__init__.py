"""A test of whether one token much longer than the others forces states of low rank: Queipo-de-Llano et al. 2025."""
