"""Networks at birth and what became of them: outcomes of training beside what was measured before it."""
