"""The mathematics of the identity study: what attention weights and hidden tokens still tell."""
