"""Mutants: copies of the source with one small change, each of which a test ought to notice.

- `python_changes`: the changes of a Python file; `typescript_changes.mjs`: those of a TypeScript file.
- `tree`: a copy of the checkout, where a change is made and taken back.
- `python_tests`, `typescript_tests`: which tests run what is changed, and whether one fails.
- `__main__`: a sample, tried one after the other.
"""
