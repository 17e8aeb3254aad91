"""Rows and steps: packed texts are as each alone, gradients over several batches are those of one."""

from __future__ import annotations

from typing import Any

import hf_models
import numpy as np
import pytest
import torch

from polygrad import Tensor, compile_step, nn
from polygrad.errors import ArgumentError
from polygrad.models.fields import Fields
from polygrad.models.registry import architecture
from polygrad.tuning import MasterWeights
from polygrad.tuning.rows import packed_rows, padded_length, single_rows, token_batch
from polygrad.tuning.steps import Trainer, batch_loss
from polygrad.tuning.texts import Example


def examples(*lengths: int, seed: int = 0) -> list[Example]:
    rng = np.random.default_rng(seed)
    out = []
    for n in lengths:
        ids = rng.integers(3, 99, n).tolist()
        ignored = int(rng.integers(1, n))
        out.append(Example(tuple(ids), (*[-100] * ignored, *ids[ignored:])))
    return out


def test_packing_keeps_every_text_once_and_fills_rows() -> None:
    found = examples(5, 9, 3, 12, 2, 7, 16, 4)
    rows = packed_rows(found, 16)
    assert all(len(row.ids) <= 16 for row in rows)
    assert len(rows) == 4  # 58 tokens
    texts = [
        (tuple(row.ids[a] for a in at), tuple(row.labels[a] for a in at))
        for row in rows
        for n in range(1, max(row.texts) + 1)
        for at in [[i for i, t in enumerate(row.texts) if t == n]]
    ]
    assert sorted(texts) == sorted((x.ids, x.labels) for x in found)
    for row in rows:
        assert row.positions[0] == 0 and row.texts[0] == 1
        assert row.counted == sum(label != -100 for label in row.labels)


@pytest.mark.parametrize(("lengths", "want"), [((3,), 16), ((16,), 16), ((17, 4), 32), ((60,), 48)])
def test_rows_are_padded_to_few_lengths(lengths: tuple[int, ...], want: int) -> None:
    assert padded_length(single_rows(examples(*lengths)), 48) == want


@pytest.mark.parametrize("name", ["llama", "gpt2", "mistral", "gemma2", "qwen3", "phi3"])
def test_packed_texts_have_the_logits_of_each_alone_within_1e_5(name: str) -> None:
    instance, found = hf_models.ours(name), examples(5, 9, 3, 12, 2)
    (row,) = packed_rows(found, 40)
    batch = token_batch([row], 2, 40)
    with Tensor.no_grad():
        logits = instance.module.forward(
            input_ids=batch.input_ids, position_ids=batch.position_ids, text_ids=batch.text_ids
        )["logits"].numpy()[0]
        at = 0
        for example in sorted(found, key=lambda x: -len(x.ids)):
            alone = instance.forward(input_ids=[list(example.ids)])["logits"].numpy()[0]
            assert hf_models.worst(logits[at : at + len(example.ids)], alone) < 1e-5
            at += len(example.ids)


def test_the_loss_of_packed_and_of_padded_rows_is_transformers_within_1e_5() -> None:
    model, _ = hf_models.reference("llama")
    instance, found = hf_models.ours("llama"), examples(5, 9, 3, 12, 2)
    total = 0.0
    with torch.no_grad():
        for x in found:
            out = model(torch.tensor([x.ids]), labels=torch.tensor([x.labels]))
            total += out.loss.item() * x.counted
    for rows in (packed_rows(found, 20), single_rows(found)):
        with Tensor.no_grad():
            got = batch_loss(instance.module, *token_batch(rows, len(rows) + 1, 20).tensors).item()
        assert got == pytest.approx(total, rel=1e-5)


def weights_after(accumulate: int, make: Any = None, recomputes: bool = False) -> list[np.ndarray]:
    instance = hf_models.ours("llama")
    instance.module.recomputes = recomputes
    params = nn.state.get_parameters(instance.module)
    trainer = Trainer(instance.module, (make or (lambda p: nn.optim.SGD(p, lr=0.5)))(params))
    rows = single_rows(examples(5, 9, 3, 12, 2, 7, 16, 4))
    size = len(rows) // accumulate
    batches = [token_batch(rows[i : i + size], size, 16) for i in range(0, len(rows), size)]
    for rate in (0.5, 0.25):
        trainer.step(batches, rate)
    return [t.numpy() for t in instance.weights().values()]


@pytest.mark.parametrize("accumulate", [2, 4])
def test_gradients_of_several_batches_are_those_of_one_to_1e_5(accumulate: int) -> None:
    for got, want in zip(weights_after(accumulate), weights_after(1), strict=True):
        assert hf_models.worst(got, want) < 1e-5


def test_layers_that_are_computed_again_give_the_same_to_1e_5() -> None:
    found = [weights_after(1, recomputes=r) for r in (False, True)]
    for got, want in zip(*found, strict=True):
        assert hf_models.worst(got, want) < 1e-5


def test_layers_that_are_computed_again_take_less_memory() -> None:
    ids, arenas, losses = Tensor(hf_models.token_ids(4, 128).astype(np.int32)), [], []
    config = {
        "vocab_size": 99, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 8,
        "num_attention_heads": 4, "max_position_embeddings": 128,
    }  # fmt: skip
    for recomputes in (False, True):
        Tensor.manual_seed(0)
        module = architecture("LlamaForCausalLM").build(Fields(config))
        module.recomputes = recomputes
        optimizer = nn.optim.SGD(nn.state.get_parameters(module), lr=0.1)
        step = compile_step(lambda m, x: m.forward(x, labels=x)["loss"], module, optimizer, ids)
        step.run(ids)
        arenas.append(step.arena_bytes)
        losses.append(step.loss_value())
    assert arenas[1] < 0.8 * arenas[0]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_masters_take_the_steps_that_16_bits_would_lose() -> None:
    """As torch's optimizer does on float32 copies, to 1e-5; the weights are these, rounded."""
    start = np.linspace(0.5, 2, 8, dtype=np.float32)
    weight = nn.Parameter(Tensor(start).cast("bfloat16"))
    optimizer = MasterWeights([weight], lambda p: nn.optim.AdamW(p, lr=1e-4))
    master = torch.tensor(weight.float().numpy(), requires_grad=True)
    judge = torch.optim.AdamW([master], lr=1e-4)
    x = Tensor(start)
    step = compile_step(lambda w, x: (w[0].float() * x).square().sum(), [weight], optimizer, x)
    for _ in range(20):
        rounded = master.detach().bfloat16().float().requires_grad_()
        (rounded * torch.tensor(start)).square().sum().backward()
        assert rounded.grad is not None
        master.grad = rounded.grad.bfloat16().float()
        judge.step()
        step.run(x)
    np.testing.assert_allclose(optimizer.masters[0].numpy(), master.detach().numpy(), atol=1e-5)
    assert np.array_equal(weight.float().numpy(), optimizer.masters[0].cast("bfloat16").float().numpy())
    assert (optimizer.masters[0].numpy() != start).all()


def test_masters_go_on_from_their_state() -> None:
    def made() -> tuple[Tensor, MasterWeights]:
        w = nn.Parameter(Tensor([1.0, 2.0]).cast("bfloat16"))
        return w, MasterWeights([w], lambda p: nn.optim.AdamW(p, lr=1e-3))

    def steps(w: Tensor, optimizer: MasterWeights, n: int) -> None:
        with Tensor.train():
            for _ in range(n):
                optimizer.zero_grad()
                w.float().square().sum().backward()
                optimizer.step()

    w, optimizer = made()
    steps(w, optimizer, 3)
    again, other = made()
    other.load_state_dict({k: t.clone().realize() for k, t in optimizer.state_dict().items()})
    steps(w, optimizer, 3)
    steps(again, other, 3)
    assert other.masters[0].tolist() == optimizer.masters[0].tolist()
    assert again.tolist() == w.tolist()


def test_masters_want_floats() -> None:
    with pytest.raises(ArgumentError, match="at least one float"):
        MasterWeights([Tensor([1])], lambda p: nn.optim.SGD(p, lr=0.1))


def test_gpt2_drops_in_training_alone() -> None:
    """Of ten thousand, a tenth within 1 %; what is kept is scaled."""
    module, ids = hf_models.ours("gpt2").module, Tensor(hf_models.token_ids(4, 80).astype(np.int32))
    with Tensor.no_grad():
        plain = module.forward(ids, output_hidden_states=True)["hidden_states"][0].numpy()
        with Tensor.train():
            dropped = module.forward(ids, output_hidden_states=True)["hidden_states"][0].numpy()
    assert np.mean(dropped == 0) == pytest.approx(0.1, abs=0.015)
    np.testing.assert_allclose(dropped[dropped != 0], plain[dropped != 0] / 0.9, rtol=1e-5)
