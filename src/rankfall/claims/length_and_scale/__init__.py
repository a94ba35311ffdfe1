"""Tests of how the length of a text affects weights: scores times log n (Su 2021, Nakanishi 2025), and a sigmoid shifted by -log n
(Ramapuram 2024)."""
