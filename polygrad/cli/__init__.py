"""`python -m polygrad`: what people do with polygrad from a shell. A command is a file in `commands/`."""
