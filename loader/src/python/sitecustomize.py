"""Python imports this module at its start, before Pyodide's own. `_polygrad_start` ends what it begins.

What imports make stays, so no collection of garbage looks at it: the collections would take a twentieth of
a start.
"""

import gc

import _polygrad_imports

gc.disable()
_polygrad_imports.begin(_polygrad_imports.__loader__.archive)
