"""The mathematics of the identity study: what attention weights and hidden states reveal about tokens."""
