"""A test of whether a map of one number, the cosine of two tokens, predicts networks of fifty layers: Giorlandino and Goldt 2025."""
