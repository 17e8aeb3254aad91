"""INTERP: interprets linear kernels in plain Python. It is the reference for the other devices, so it shares
no code with the builders and has its own rounding."""
