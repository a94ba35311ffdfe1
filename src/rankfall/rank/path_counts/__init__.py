"""How many paths have each length."""
