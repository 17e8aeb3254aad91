"""From kernels to lists of instructions: passes over the list of kernels (`kernels/`), decisions about one
kernel (`opts/`), and its lowering (`lower/`). `target.py` describes a machine."""
