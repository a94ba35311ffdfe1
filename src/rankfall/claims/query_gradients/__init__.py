"""From which scale of scores on queries have gradients: Giorlandino and Goldt 2025."""
