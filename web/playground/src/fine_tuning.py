"""Fine-tunes a model with LoRA, in slices of time, so that the page can show the loss and stop in between.

`_playground_tuning` is the run that is shown; `_playground_tune(files, settings)` begins another one.
"""

import json
import time

from polygrad import Tensor, hf, nn, tuning
from polygrad.tuning.rows import epoch_order, packed_rows, padded_length, token_batch
from polygrad.tuning.steps import Trainer

_LENGTH, _ROWS, _SHARE, _ANSWER = 128, 8, 0.1, 64


class _FineTuning:
    """`files`: those of the model by name, Tensors of bytes. `settings`: records, rank, steps, rate."""

    def __init__(self, files, settings):
        contents = {name: bytes(tensor.data()) for name, tensor in files.items()}
        weights, config = contents.pop("model.safetensors"), contents.pop("config.json")
        self.base, self.model = (
            hf.load_hf_bytes(config, weights, contents, dtype="float32") for _ in range(2)
        )
        Tensor.manual_seed(0)
        rank, self.steps, self.rate = settings["rank"], settings["steps"], settings["rate"]
        self.adapters = tuning.add_lora(self.model, rank=rank, alpha=2 * rank, targets="all-linear")
        examples = tuning.examples_of(settings["records"], self.model.tokenizer, _LENGTH)
        self.rows = packed_rows(examples, _LENGTH)
        self.optimizer = nn.optim.AdamW(self.adapters.parameters, lr=self.rate)
        self.optimizer.clip_gradients(max_norm=1.0)
        self.trainer = Trainer(self.model.module, self.optimizer, accumulates=False)
        self.batches, self.step = self._batches(), 0

    def _batches(self):
        """Batches without end, epoch after epoch."""
        count, length = min(_ROWS, len(self.rows)), padded_length(self.rows, _LENGTH)
        epoch = 0
        while True:
            order = epoch_order(len(self.rows), 0, epoch)
            for at in range(0, len(order), count):
                yield token_batch([self.rows[i] for i in order[at : at + count]], count, length)
            epoch += 1

    def about(self):
        """How many weights there are, and how many of them are trained."""
        counts = (self.base.weights().values(), self.adapters.parameters)
        return json.dumps([sum(t.numel() for t in tensors) for tensors in counts])

    def advance(self, seconds):
        """Train for a time, one step at least; the losses. The rate falls along a line."""
        losses, end = [], time.perf_counter() + seconds
        while self.step < self.steps and (not losses or time.perf_counter() < end):
            rate = self.rate * (1 - self.step / self.steps)
            losses.append(self.trainer.step([next(self.batches)], rate))
            self.step += 1
        return json.dumps(losses)

    def answers(self, prompt):
        """What the model writes after a prompt, text or a conversation: before, and as it is trained now."""
        self.model.forget_captures()  # with the adapters as they were
        models = (self.base, self.model)
        return json.dumps([m.generate(prompt, max_new_tokens=_ANSWER, temperature=0).text for m in models])

    def adapter_files(self):
        """PEFT's files, by name."""
        return tuning.adapter_files(self.adapters)


def _playground_tune(files, settings):
    global _playground_tuning
    _playground_tuning = _FineTuning(files, settings)
    return _playground_tuning.about()
