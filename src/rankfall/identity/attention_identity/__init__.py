"""Information in attention weights of trained cells."""
