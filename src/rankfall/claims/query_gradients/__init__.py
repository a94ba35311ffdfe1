"""A test of the scale of scores from which queries have gradients: Giorlandino and Goldt 2025."""
