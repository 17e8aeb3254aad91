"""Fine-tuning: low-rank adapters in PEFT's format, and training of language models on texts.

    from polygrad import hf, tuning
    model = hf.load_hf("folder")
    adapters = tuning.add_lora(model, rank=8, alpha=16)
    tuning.train(adapters, "texts.jsonl", epochs=3, output="tuned")

`lora.py` has the adapters, `peft_files.py` their files. `texts.py` makes tokens and labels of records,
`rows.py` rows of one length of these, and `steps.py` captured steps over them. `data.py` reads data, `run.py`
trains on them step by step, `run_state.py` keeps the state of a run, and `training.py` is the loop over it.
"""

from __future__ import annotations

from polygrad.tuning.lora import Adapters, LoraConfig, add_lora, merge
from polygrad.tuning.masters import MasterWeights
from polygrad.tuning.peft_files import adapter_files, load_adapters, save_adapters
from polygrad.tuning.run import Settings, TrainingRun
from polygrad.tuning.texts import Example, examples_of, read_records
from polygrad.tuning.training import Report, train

__all__ = [
    "Adapters",
    "Example",
    "LoraConfig",
    "MasterWeights",
    "Report",
    "Settings",
    "TrainingRun",
    "adapter_files",
    "add_lora",
    "examples_of",
    "load_adapters",
    "merge",
    "read_records",
    "save_adapters",
    "train",
]
