"""Fine-tunes a language model on texts: all of its weights, or low-rank adapters (--lora).

polygrad train --model folder --data texts.jsonl --lora 8 --output tuned

Each line of the data is a JSON object: {"text"}, {"prompt", "completion"} or {"messages"}. The output folder
gets checkpoint.safetensors, loss.svg and, at the end, adapters in PEFT's format or the whole model. SIGTERM
writes a checkpoint and ends the run with status 143; --resume goes on from there to the last bit.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from polygrad.cli.hosts import write
from polygrad.errors import ArgumentError
from polygrad.hf.instances import LanguageModel
from polygrad.hf.load import load_hf
from polygrad.tensor.tensor import Tensor
from polygrad.training.termination import termination
from polygrad.tuning.lora import add_lora, merge
from polygrad.tuning.run import SCHEDULES
from polygrad.tuning.training import Report, train

NAME = "train"
HELP = "fine-tune a language model on texts"

_TERMINATED = 128 + 15  # the status of a program that SIGTERM ended


def add_arguments(parser: argparse.ArgumentParser) -> None:
    def number(name: str, kind: type, default: Any, text: str) -> None:
        shown = "" if default is None else f" ({default})"
        parser.add_argument(name, type=kind, default=default, metavar="N", help=text + shown)

    parser.add_argument("--model", required=True, help="a folder, or a repository's name")
    parser.add_argument("--data", required=True, metavar="FILE", help="texts, a JSONL file")
    parser.add_argument("--output", metavar="FOLDER", help="where checkpoints and the result go")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint in the output folder"
    )
    lora = parser.add_argument_group("adapters")
    lora.add_argument("--lora", type=int, metavar="RANK", help="train adapters of this rank")
    lora.add_argument("--alpha", type=float, metavar="N", help="their scale, times the rank (2 * RANK)")
    lora.add_argument(
        "--targets", metavar="NAMES", help="modules, by commas, or all-linear (queries, values)"
    )
    lora.add_argument("--dropout", type=float, default=0.0, metavar="P", help="of their inputs (0)")
    lora.add_argument("--merge", metavar="FOLDER", help="also write the whole model, with the adapters added")
    number("--epochs", int, 1, "how often all texts come")
    number("--steps", int, None, "steps in all (as many as the epochs have)")
    number("--batch-size", int, 8, "rows of a batch")
    number("--accumulate", int, 1, "batches of a step")
    number("--lr", float, None, "the learning rate (5e-5, of adapters 2e-4)")
    number("--warmup", int, 0, "steps in which it rises")
    parser.add_argument("--schedule", choices=SCHEDULES, default="linear", help="how it falls (linear)")
    number("--weight-decay", float, 0.0, "AdamW's")
    number("--max-norm", float, 1.0, "gradients are clipped to it")
    number("--max-length", int, 512, "tokens of a row")
    parser.add_argument("--no-packing", action="store_true", help="one text a row")
    parser.add_argument("--recompute", action="store_true", help="less memory, a third more work")
    parser.add_argument("--validation", metavar="FILE|FRACTION", help="texts, or the part of the data")
    number("--checkpoint-every", int, None, "steps between checkpoints (an epoch)")
    number("--seed", int, 0, "of orders, adapters and dropout")
    parser.add_argument("--dtype", help="of the weights (that of the file)")
    parser.add_argument("--quantize", metavar="KIND", help="pack the weights of products (QLoRA)")
    parser.add_argument("--device", help="the device (the default one of this host)")
    parser.add_argument("--json", action="store_true", help="write the result as JSON")


def run(options: argparse.Namespace) -> int:
    if options.lora is None and (options.merge or options.targets or options.alpha is not None):
        raise ArgumentError("--merge, --targets and --alpha are for adapters: expected --lora, too")
    model = load_hf(
        options.model,
        dtype=options.dtype,
        device=options.device,
        quantize=options.quantize,
        activations="float32",  # those of training, where gradients go through products
    )
    if not isinstance(model, LanguageModel):
        raise ArgumentError(f"--model: expected a model that writes text, got {model.architecture.name}")
    trained: Any = model
    if options.lora is not None:
        Tensor.manual_seed(options.seed)
        targets = options.targets.split(",") if options.targets else None
        targets = "all-linear" if targets == ["all-linear"] else targets
        alpha = 2.0 * options.lora if options.alpha is None else options.alpha
        trained = add_lora(model, options.lora, alpha, targets, options.dropout)
    with termination() as should_stop:
        report = train(
            trained,
            options.data,
            epochs=options.epochs,
            steps=options.steps,
            batch_size=options.batch_size,
            accumulate=options.accumulate,
            lr=options.lr,
            warmup=options.warmup,
            schedule=options.schedule,
            weight_decay=options.weight_decay,
            max_norm=options.max_norm,
            max_length=min(options.max_length, model.module.max_length),
            packing=not options.no_packing,
            recompute=options.recompute,
            validation=_validation(options.validation),
            output=options.output,
            resume=options.resume,
            checkpoint_every=options.checkpoint_every,
            seed=options.seed,
            should_stop=should_stop,
        )
        stopped = should_stop() and not report.is_done
    if options.merge and report.is_done:
        merge(model).save(options.merge)
    write(json.dumps(_plain(report)) if options.json else _text(report, options.output))
    return _TERMINATED if stopped else 0


def _validation(text: str | None) -> str | float | None:
    """A fraction where the text is a number, and no file."""
    if text is None or Path(text).exists():
        return text
    try:
        return float(text)
    except ValueError:
        return text


def _plain(report: Report) -> dict[str, Any]:
    return {
        "steps": report.steps,
        "of": report.of,
        "is_done": report.is_done,
        "losses": report.losses,
        "validation": report.validation,
        "tokens": report.tokens,
        "seconds": report.seconds,
    }


def _text(report: Report, output: str | None) -> str:
    lines = [
        f"{report.steps} of {report.of} steps, loss {report.losses[-1]:.4f}" if report.losses else "no steps"
    ]
    if report.validation:
        lines.append(f"validation loss {report.validation[-1][1]:.4f}")
    if report.seconds and report.tokens:
        lines.append(f"{report.tokens:,} tokens, {report.tokens / report.seconds:,.0f} tokens/s")
    if output is not None:
        lines.append(f"written to {output}")
    if not report.is_done:
        lines.append("not done: go on with --resume")
    return "\n".join(lines)
