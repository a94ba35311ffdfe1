"""What products of the maps between streams do with depth: free ones grow, doubly stochastic ones make the streams equal. Zhu et al. 2024,
Xie et al. 2025.
"""
