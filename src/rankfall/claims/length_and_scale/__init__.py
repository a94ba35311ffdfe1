"""What the length of a text does to weights: scores times log n (Su 2021, Nakanishi 2025), a sigmoid shifted by -log n (Ramapuram 2024)."""
