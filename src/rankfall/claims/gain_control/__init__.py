"""A test of whether attention without its sequence mean keeps tokens apart for a hundred layers: Giorlandino and Goldt 2025 show this in
their recursion, and here it is measured in networks."""
