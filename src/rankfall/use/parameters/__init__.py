"""How many numbers a network learns, and where they are."""
