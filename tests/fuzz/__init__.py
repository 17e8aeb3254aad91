"""Readers of files of others, given damaged files: values or an error of ours, soon, in bounded memory.

    make fuzz SECONDS_EACH=60
    PYTHONPATH=tests python -m fuzz --parser gguf --seconds 600

`parsers.py` names the readers and their good files, `changes.py` damages these, `judge.py` says what a reader
did wrong, and `__main__.py` is the loop. What was found and mended is kept in `found/`, a file each, and
`test_fuzz.py` reads it.
"""
