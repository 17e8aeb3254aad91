"""The commands of `python -m polygrad`: each module here is one, and there is no list of them elsewhere.

A module has `NAME`, `HELP` (a line), `DEFAULT` (whether it runs where no command is named; optional),
`add_arguments(parser)` and `run(options) -> int`, the exit status. Its docstring is its `--help`.
"""
