"""INTERP: the linear kernel, interpreted in plain Python. The judge between devices; it shares no code with
the builders, and rounds numbers by itself."""
