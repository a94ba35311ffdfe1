"""Tests of products of the maps between streams over depth: free maps grow, doubly stochastic maps make the streams equal (Zhu et al. 2024,
Xie et al. 2025)."""
