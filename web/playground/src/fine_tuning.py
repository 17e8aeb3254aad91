"""Fine-tunes a model with LoRA, in slices of time, so that the page can show the loss and stop in between.

`_playground_tuning` is the run that is shown; `_playground_tune(files, settings)` begins another one.
"""

import io
import json
import tempfile
import time
import zipfile
from pathlib import Path

from polygrad import Tensor, hf, tuning

_LENGTH, _ANSWER = 128, 64


class _FineTuning:
    """`files`: those of the model by name, Tensors of bytes. `settings`: records, rank, steps, rate."""

    def __init__(self, files, settings):
        self.files = {name: bytes(tensor.data()) for name, tensor in files.items()}
        self.base, self.model = self._load(), self._load()
        Tensor.manual_seed(0)
        rank = settings["rank"]
        self.adapters = tuning.add_lora(self.model, rank=rank, alpha=2 * rank, targets="all-linear")
        options = tuning.Settings(steps=settings["steps"], lr=settings["rate"], max_length=_LENGTH)
        self.run = tuning.TrainingRun(self.adapters, settings["records"], options)

    def _load(self):
        others = dict(self.files)
        weights, config = others.pop("model.safetensors"), others.pop("config.json")
        return hf.load_hf_bytes(config, weights, others, dtype="float32")

    def about(self):
        """How many weights there are, and how many of them are trained."""
        counts = (self.base.weights().values(), self.adapters.parameters)
        return json.dumps([sum(t.numel() for t in tensors) for tensors in counts])

    def advance(self, seconds):
        """Train for a time, one step at least; the losses."""
        losses, end = [], time.perf_counter() + seconds
        while not self.run.is_done and (not losses or time.perf_counter() < end):
            losses.append(self.run.advance())
        return json.dumps(losses)

    def answers(self, prompt):
        """What the model writes after a prompt, text or a conversation: before, and as it is trained now."""
        models = (self.base, self.model)
        return json.dumps([m.generate(prompt, max_new_tokens=_ANSWER, temperature=0).text for m in models])

    def adapter_files(self):
        """PEFT's files, by name."""
        return tuning.adapter_files(self.adapters)

    def _merged(self):
        """The model with the adapters in its weights. The one that is shown keeps them apart."""
        model = self._load()
        tuning.load_adapters(model, self.adapter_files())
        return tuning.merge(model)

    def exported(self):
        """The merged model as a `.pgrd` file, which runs without Python."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.pgrd")
            self._merged().export(path)
            return path.read_bytes()

    def archive(self):
        """The merged model as a ZIP archive of the folder that `load_hf` and transformers read."""
        out = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w") as archive:
            self._merged().save(folder)
            for path in sorted(Path(folder).iterdir()):
                archive.write(path, path.name)
        return out.getvalue()


def _playground_tune(files, settings):
    global _playground_tuning
    _playground_tuning = _FineTuning(files, settings)
    return _playground_tuning.about()
