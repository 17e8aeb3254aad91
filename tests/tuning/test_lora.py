"""LoRA against PEFT: one step of training, files of adapters both ways, merged weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hf_models
import numpy as np
import peft
import pytest
import torch
import transformers

from polygrad import Tensor, hf, nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.tuning import Adapters, add_lora, load_adapters, merge, save_adapters
from polygrad.tuning.lora import ALL

_TARGETS: dict[str, list[str] | str | None] = {
    "llama": None,
    "llama tied, biases, llama3 positions": ALL,
    "gpt2": None,
    "phi3": None,
    "mixtral": ["q_proj", "o_proj"],
    "qwen3": ["o_proj", "down_proj", "lm_head"],
}


def theirs(name: str, targets: Any, **options: Any) -> Any:
    """PEFT's model with random adapters, so that both matrices have gradients."""
    model, folder = hf_models.reference(name)
    fresh = type(model).from_pretrained(folder)
    family = "gpt2" if name == "gpt2" else None
    chosen = {"llama": ["q_proj", "v_proj"], "phi3": ["qkv_proj"], "gpt2": ["c_attn"]}.get(name, targets)
    config = peft.LoraConfig(
        r=4,
        lora_alpha=6,
        target_modules=ALL if targets == ALL else chosen,
        fan_in_fan_out=family == "gpt2",
        task_type="CAUSAL_LM",
        **options,
    )
    torch.manual_seed(1)
    found = peft.get_peft_model(fresh, config)
    with torch.no_grad():
        for key, p in found.named_parameters():
            if "lora_" in key:
                p.copy_(torch.randn_like(p) * 0.1)
    return found.eval()  # dropout of GPT-2 is off; gradients are on


def logits_of(model: Any, ids: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor(ids)).logits.numpy()


def ours_logits(instance: Any, ids: np.ndarray) -> np.ndarray:
    with Tensor.no_grad():
        return instance.forward(input_ids=ids)["logits"].numpy()


@pytest.mark.parametrize("name", _TARGETS)
def test_one_step_is_pefts_to_1e_4(name: str, tmp_path: Path) -> None:
    judge, instance = theirs(name, _TARGETS[name]), hf_models.ours(name)
    judge.save_pretrained(tmp_path)
    adapters = load_adapters(instance, tmp_path)
    _no_dropout(instance.module)
    ids = hf_models.token_ids(2, 12)
    optimizer = torch.optim.AdamW([p for p in judge.parameters() if p.requires_grad], lr=1e-2)
    expected = judge(torch.tensor(ids), labels=torch.tensor(ids)).loss
    expected.backward()
    optimizer.step()
    instance.optimizer = nn.optim.AdamW(adapters.parameters, lr=1e-2)
    assert instance.train_step(input_ids=ids, labels=ids).item() == pytest.approx(expected.item(), abs=1e-4)
    found = {k.replace(".default", ""): p for k, p in judge.named_parameters() if p.requires_grad}
    own = {f"base_model.model.{k}": t for k, t in adapters.weights().items()}
    assert own.keys() == found.keys()
    for key, value in own.items():
        assert hf_models.worst(value.numpy(), found[key].detach().numpy()) < 1e-4, key


def _no_dropout(module: Any) -> None:
    for layer in getattr(module, "h", []):
        object.__setattr__(layer.attn.config, "dropout", 0.0)
        layer.dropout = 0.0
    if hasattr(module, "dropout"):
        module.dropout = 0.0


@pytest.mark.parametrize("name", _TARGETS)
def test_pefts_files_give_the_same_logits_and_are_written_back_within_1e_5(name: str, tmp_path: Path) -> None:
    judge, ids = theirs(name, _TARGETS[name]), hf_models.token_ids(2, 9)
    judge.save_pretrained(tmp_path / "theirs")
    instance = hf_models.ours(name)
    before = ours_logits(instance, ids)
    adapters = load_adapters(instance, tmp_path / "theirs")
    expected = logits_of(judge, ids)
    assert hf_models.worst(ours_logits(instance, ids), expected) < 1e-5
    assert hf_models.worst(before, expected) > 1e-3
    save_adapters(adapters, tmp_path / "ours")
    base = type(hf_models.reference(name)[0]).from_pretrained(hf_models.reference(name)[1])
    again = peft.PeftModel.from_pretrained(base, tmp_path / "ours").eval()
    assert np.array_equal(logits_of(again, ids), expected)


@pytest.mark.parametrize("name", ["llama", "gpt2", "phi3"])
def test_adapters_made_here_are_read_by_peft_within_1e_5(name: str, tmp_path: Path) -> None:
    instance, ids = hf_models.ours(name), hf_models.token_ids(2, 9)
    adapters = add_lora(instance, rank=3, alpha=5, dropout=0.25, rank_stabilized=True)
    _randomize(adapters)
    save_adapters(adapters, tmp_path)
    base = type(hf_models.reference(name)[0]).from_pretrained(hf_models.reference(name)[1])
    judge = peft.PeftModel.from_pretrained(base, tmp_path).eval()
    assert hf_models.worst(ours_logits(instance, ids), logits_of(judge, ids)) < 1e-5
    assert judge.peft_config["default"].lora_dropout == 0.25


def _randomize(adapters: Adapters) -> None:
    with Tensor.no_grad():
        for p in adapters.parameters:
            p.assign(Tensor.randn(*p.shape) * 0.1).realize()


@pytest.mark.parametrize("name", ["llama", "gpt2", "phi3"])
def test_merged_weights_give_the_same_logits_within_1e_5(name: str, tmp_path: Path) -> None:
    instance, ids = hf_models.ours(name), hf_models.token_ids(2, 9)
    _randomize(adapters := add_lora(instance, rank=4, alpha=8, targets=ALL))
    expected = ours_logits(instance, ids)
    with pytest.raises(ModelError, match="adapters"):
        instance.save(tmp_path)
    assert merge(instance) is instance
    assert hf_models.worst(ours_logits(instance, ids), expected) < 1e-5
    assert all(t.requires_grad for t in instance.weights().values())
    instance.save(tmp_path)
    judge = type(hf_models.reference(name)[0]).from_pretrained(tmp_path).eval()
    assert hf_models.worst(logits_of(judge, ids), expected) < 1e-5
    with pytest.raises(ArgumentError, match="merge"):
        merge(instance)
    with pytest.raises(ArgumentError, match="merged into"):
        save_adapters(adapters, tmp_path)


def test_new_adapters_change_nothing_and_only_they_are_trained() -> None:
    instance, ids = hf_models.ours("llama"), hf_models.token_ids(2, 9)
    before, weights = ours_logits(instance, ids), {k: t.numpy().copy() for k, t in instance.weights().items()}
    adapters = add_lora(instance, rank=2, alpha=4)
    assert hf_models.worst(ours_logits(instance, ids), before) < 1e-6
    first = instance.train_step(input_ids=ids, labels=ids).item()
    for _ in range(5):
        last = instance.train_step(input_ids=ids, labels=ids).item()
    assert last < first
    after = instance.weights()
    assert all(np.array_equal(after[k].numpy(), v) for k, v in weights.items())
    assert len(adapters.parameters) == 2 * len(adapters.places)


def test_it_generates_with_its_adapters() -> None:
    instance = hf_models.ours("llama")
    plain = instance.generate([5, 6, 7], max_new_tokens=8, stop_tokens=()).tokens
    _randomize(adapters := add_lora(instance, rank=4, alpha=64, targets=ALL))
    tuned = instance.generate([5, 6, 7], max_new_tokens=8, stop_tokens=()).tokens
    merge(instance)
    assert tuned == instance.generate([5, 6, 7], max_new_tokens=8, stop_tokens=()).tokens
    assert tuned != plain
    assert adapters.config.rank == 4


class Packed:
    """A weight as int8 with a scale for each row: it has a `transpose()` and is no Tensor."""

    def __init__(self, weight: Tensor) -> None:
        values = weight.numpy()
        self.scale = nn.Buffer(Tensor(np.abs(values).max(1, keepdims=True) / 127))
        self.values = nn.Buffer(Tensor(np.round(values / self.scale.numpy()).astype(np.int8)))

    def transpose(self) -> Tensor:
        return (self.values.cast("float32") * self.scale).transpose()


def test_packed_weights_stay_packed_and_train_as_the_same_weights_in_float32_to_1e_5() -> None:
    packed, plain = hf_models.ours("llama"), hf_models.ours("llama")
    for a, b in zip(packed.module.model.layers, plain.module.model.layers, strict=True):
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            p = Packed(getattr(a.self_attn, name).weight)
            getattr(a.self_attn, name).weight = p
            linear = getattr(b.self_attn, name)
            linear.weight = p.transpose().transpose().detach().clone().realize()
    ids, losses = hf_models.token_ids(2, 9), []
    for instance in (packed, plain):
        Tensor.manual_seed(5)
        adapters = add_lora(instance, rank=2, alpha=4)
        instance.optimizer = nn.optim.AdamW(adapters.parameters, lr=1e-2)
        losses.append([instance.train_step(input_ids=ids, labels=ids).item() for _ in range(4)])
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-5)
    assert losses[0][-1] < losses[0][0]
    assert isinstance(packed.module.model.layers[0].self_attn.q_proj.weight, Packed)
    expected = ours_logits(packed, ids)
    merge(packed)
    assert packed.module.model.layers[0].self_attn.q_proj.weight.dtype.name == "float32"
    assert hf_models.worst(ours_logits(packed, ids), expected) < 1e-5


@pytest.mark.parametrize("kind", ["int8", "q4_0"])
def test_quantized_models_are_trained_saved_and_merged(kind: str, tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    instance, ids = hf.load_hf(tmp_path, quantize=kind, activations="float32"), hf_models.token_ids(2, 9) % 96
    packed = instance.module.model.layers[0].mlp.up_proj.weight
    adapters = add_lora(instance, rank=4, alpha=8, targets=ALL)
    instance.optimizer = nn.optim.AdamW(adapters.parameters, lr=1e-2)
    losses = [instance.train_step(input_ids=ids, labels=ids).item() for _ in range(10)]
    assert losses[-1] < losses[0] - 0.05
    assert instance.module.model.layers[0].mlp.up_proj.weight is packed
    tuned = ours_logits(instance, ids)
    save_adapters(adapters, tmp_path / "adapters")
    again = hf.load_hf(tmp_path, quantize=kind, activations="float32")
    load_adapters(again, tmp_path / "adapters")
    assert np.array_equal(ours_logits(again, ids), tuned)
    assert hf_models.worst(ours_logits(merge(instance), ids), tuned) < 1e-5


def test_modules_to_save_are_trained_and_kept(tmp_path: Path) -> None:
    instance, ids = hf_models.ours("llama"), hf_models.token_ids(2, 9)
    adapters = add_lora(instance, rank=2, alpha=4, also_train=["lm_head"])
    assert list(adapters.trained) == ["lm_head.weight"]
    before = instance.module.lm_head.weight.numpy().copy()
    instance.optimizer = nn.optim.AdamW(adapters.parameters, lr=1e-2)
    instance.train_step(input_ids=ids, labels=ids)
    expected = ours_logits(instance, ids)
    assert not np.array_equal(instance.module.lm_head.weight.numpy(), before)
    save_adapters(adapters, tmp_path)
    base = type(hf_models.reference("llama")[0]).from_pretrained(hf_models.reference("llama")[1])
    judge = peft.PeftModel.from_pretrained(base, tmp_path).eval()
    assert hf_models.worst(logits_of(judge, ids), expected) < 1e-5
    again = hf_models.ours("llama")
    load_adapters(again, tmp_path)
    assert np.array_equal(ours_logits(again, ids), expected)


def test_adapters_of_16_bit_weights_are_float32() -> None:
    instance = hf_models.ours("llama", dtype="bfloat16")
    adapters = add_lora(instance, rank=2, alpha=4)
    assert {p.dtype.name for p in adapters.parameters} == {"float32"}
    ids = hf_models.token_ids(2, 9)
    losses = [instance.train_step(input_ids=ids, labels=ids).item() for _ in range(3)]
    assert losses[2] < losses[0]
    merge(instance)
    assert {t.dtype.name for t in instance.weights().values()} == {"bfloat16"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank"),
        ({"alpha": float("nan")}, "alpha"),
        ({"dropout": 1.0}, "dropout"),
        ({"targets": ["nothing"]}, "nothing.*q_proj"),
        ({"targets": []}, "at least one"),
        ({"also_train": ["nothing"]}, "nothing"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    instance = hf_models.ours("llama")
    with pytest.raises(ArgumentError, match=message):
        add_lora(instance, **{"rank": 2, "alpha": 4, **options})
    add_lora(instance, rank=2, alpha=4)  # nothing was half changed
    with pytest.raises(ArgumentError, match="merge first"):
        add_lora(instance, rank=2, alpha=4)


def _files(tmp_path: Path) -> dict[str, bytes]:
    adapters = add_lora(hf_models.ours("llama"), rank=2, alpha=4)
    save_adapters(adapters, tmp_path)
    return {p.name: p.read_bytes() for p in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"peft_type": "IA3"}, "peft_type"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"r": 3}, "lora_A.weight: expected floats of shape"),
        ({"r": 0}, "r: expected an integer"),
        ({"rank_pattern": {"q_proj": 4}}, "rank_pattern"),
        ({"lora_dropout": 2}, "lora_dropout"),
        ({"modules_to_save": ["lm_head"]}, "lm_head.weight: missing"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    files, instance = _files(tmp_path), hf_models.ours("llama")
    files["adapter_config.json"] = json.dumps(json.loads(files["adapter_config.json"]) | change).encode()
    with pytest.raises(ModelError, match=message):
        load_adapters(instance, files)
    assert all(t.requires_grad for t in instance.weights().values())  # untouched


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    files, instance = _files(tmp_path), hf_models.ours("llama")
    weights = nn.state.safe_load(files["adapter_model.safetensors"])
    first = next(iter(weights))

    def refused(tensors: Any, message: str) -> None:
        data = tensors if isinstance(tensors, bytes) else nn.state.safe_save(tensors)
        with pytest.raises(ModelError, match=message):
            load_adapters(instance, files | {"adapter_model.safetensors": data})

    refused({k: t for k, t in weights.items() if k != first}, "missing")
    refused({}, "no adapters")
    refused(weights | {"x.lora_A.weight": weights[first]}, "expected names")
    refused(weights | {"base_model.model.x.lora_A.weight": weights[first]}, "no Linear layer x")
    refused(weights | {"base_model.model.x.weight": weights[first]}, "modules_to_save")
    refused(files["adapter_model.safetensors"][:-4], "adapter_model.safetensors")
    with pytest.raises(ModelError, match=r"adapter_config.json: missing"):
        load_adapters(instance, tmp_path / "nowhere")
    assert all(t.requires_grad for t in instance.weights().values())


def _bert(folder: Path) -> Any:
    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return transformers.BertForSequenceClassification.from_pretrained(folder)


def test_one_step_of_a_classifier_is_pefts_to_1e_4(tmp_path: Path) -> None:
    config = peft.LoraConfig(
        r=4, lora_alpha=6, task_type="SEQ_CLS"
    )  # BERT: query and value, and the classifier
    judge = peft.get_peft_model(_bert(tmp_path / "bert"), config).eval()
    with torch.no_grad():
        for key, p in judge.named_parameters():
            if "lora_" in key:
                p.copy_(torch.randn_like(p) * 0.1)
    judge.save_pretrained(tmp_path / "theirs")
    instance = hf.load_hf(tmp_path / "bert")
    adapters = load_adapters(instance, tmp_path / "theirs")
    ids, labels = hf_models.token_ids(4, 12), np.array([0, 2, 1, 2])
    optimizer = torch.optim.AdamW([p for p in judge.parameters() if p.requires_grad], lr=1e-2)
    expected = judge(torch.tensor(ids), labels=torch.tensor(labels)).loss
    expected.backward()
    optimizer.step()
    instance.optimizer = nn.optim.AdamW(adapters.parameters, lr=1e-2)
    found = instance.train_step(input_ids=ids, labels=labels).item()
    assert found == pytest.approx(expected.item(), abs=1e-4)
    judge.save_pretrained(tmp_path / "after")
    save_adapters(adapters, tmp_path / "ours")
    want, own = (
        nn.state.safe_load(tmp_path / name / "adapter_model.safetensors") for name in ("after", "ours")
    )
    assert own.keys() == want.keys()
    for key, value in own.items():
        assert hf_models.worst(value.numpy(), want[key].numpy()) < 1e-4, key
    again = peft.PeftModel.from_pretrained(_bert(tmp_path / "bert"), tmp_path / "ours").eval()
    with torch.no_grad():
        logits = again(torch.tensor(ids)).logits.numpy()
    assert hf_models.worst(ours_logits(instance, ids), logits) < 1e-5
