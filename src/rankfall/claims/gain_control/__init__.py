"""A test of whether taking the mean token off what attention makes keeps tokens apart for a hundred layers, measured: Giorlandino and Goldt
2025 show their recursion."""
