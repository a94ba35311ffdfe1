"""What the machine is compiled of: this folder's text, and no other of the machine's, names the folder of its machine code."""
