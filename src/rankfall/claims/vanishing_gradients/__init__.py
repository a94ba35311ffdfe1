"""Which gradients vanish where all tokens are equal: Noci et al. 2022."""
