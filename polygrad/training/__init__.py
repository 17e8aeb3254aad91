"""Training of a model: `fit`, callbacks, and checkpoints from which a run goes on to the last bit.

    from polygrad import nn, training
    history = training.fit(
        model, (x, y), loss="cross_entropy", metrics=["accuracy"], epochs=20, validation=0.1,
        callbacks=[training.EarlyStopping(patience=3), training.Checkpoints("run")],
    )
    history.save("curves.svg")

`fit.py` reads the arguments, `run.py` is the loop, `steps.py` has the captured Programs, `batches.py` the
order of batches, `measures.py` the losses and metrics with names, `callbacks.py` the functions that are
called between steps, `checkpoint.py` the state of a run and `checkpoint_files.py` its files, `termination.py`
SIGTERM.
"""

from __future__ import annotations

from polygrad.training.callbacks import Callback, Checkpoints, EarlyStopping
from polygrad.training.fit import fit
from polygrad.training.run import TrainingRun
from polygrad.training.saved_state import SavedState

__all__ = ["Callback", "Checkpoints", "EarlyStopping", "SavedState", "TrainingRun", "fit"]
