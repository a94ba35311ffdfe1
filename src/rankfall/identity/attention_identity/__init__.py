"""What attention weights still tell, in networks of ours."""
