"""Tests of tokens as particles that cluster on a sphere (Geshkovski et al. 2023), and of how many clusters last (Karagodin et al. 2024)."""
