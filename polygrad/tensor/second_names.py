"""Second names of arguments as type checkers see them: in the stub of this module. When a program runs there
is nothing here: `core/argument_names.py` has the table.
"""

from __future__ import annotations


class SecondNames:
    """Nothing: the stub of this module has the methods whose arguments have second names."""

    __slots__ = ()
