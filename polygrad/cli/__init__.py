"""`python -m polygrad`: the command line. Each command is a file in `commands/`."""
