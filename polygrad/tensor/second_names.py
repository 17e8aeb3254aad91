"""Second names of arguments for type checkers, in the stub of this module. At run time
`core/argument_names.py` has the table.
"""

from __future__ import annotations


class SecondNames:
    """Empty at run time: the stub of this module has the methods whose arguments have second names."""

    __slots__ = ()
