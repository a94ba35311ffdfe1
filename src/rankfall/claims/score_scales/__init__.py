"""A test of whether scores have to grow like log n or like its root, so that attention neither averages nor sees one token: Chen et al.
2025, and Giorlandino and Goldt 2025."""
