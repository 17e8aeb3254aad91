"""Mutants: copies of the source with one small change, each of which a test ought to notice.

- `python_changes`: the changes of a Python file; `typescript_changes.mjs`: those of a TypeScript file.
- `languages`: which sources have mutants.
- `tree`: a copy of the checkout, where a change is made and taken back.
- `python_tests`, `typescript_tests`: which tests run, and whether one fails.
- `new_code`, `forks`: how that is done without importing and collecting everything for each mutant.
- `__main__`: a sample, tried one after the other.
"""
