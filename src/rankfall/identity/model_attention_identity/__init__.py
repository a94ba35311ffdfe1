"""What attention weights still tell, in real models."""
