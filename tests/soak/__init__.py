"""Random programs for as long as one wants, on several devices and in several ways, judged by torch.

    make soak MINUTES=60

`operations.py` draws steps, `program.py` makes programs of them, `judge.py` says what is right, `ways.py`
runs them on Tensors, `reduce.py` makes one that fails smaller. `suites.py` has these and the other random
programs of the tests by seed; `__main__.py` is the loop. What was found and mended is kept in `found/`, as
JSON, and `test_soak.py` runs it.
"""
