"""Weights that a file has under an old name, or not at all because they are tied to another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from encoder_cases import CASES
from model_checkpoints import load, randomize, save

from polygrad import hf, nn
from polygrad.errors import ModelError
from polygrad.models.names import Names, Source
from polygrad.models.registry import architecture


def test_a_name_is_looked_for_elsewhere_only_if_it_is_missing() -> None:
    names = Names(elsewhere=(("norm.weight", "norm.gamma"), ("head", "shared")))
    sources = {n: Source((n,)) for n in ("a.norm.weight", "b.norm.weight", "head.weight", "other.weight")}
    found = names.locate(sources, {"a.norm.weight", "a.norm.gamma", "b.norm.gamma", "shared.weight"})
    assert [s.names[0] for s in found.values()] == [
        "a.norm.weight",
        "b.norm.gamma",
        "shared.weight",
        "other.weight",  # nowhere: it is named as it should be
    ]


def test_a_bert_whose_normalisations_have_old_names_is_read(tmp_path: Path) -> None:
    """As bert-base-uncased has them: gamma and beta."""
    save(randomize(CASES["bert-mlm"].model()), tmp_path)
    expected = nn.state.get_state_dict(load(tmp_path)[0])
    path = str(tmp_path / "model.safetensors")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def renamed(name: str) -> str:
        tail = ".".join(name.split(".")[-2:])
        return name.removesuffix(tail) + old.get(tail, tail)

    nn.state.safe_save({renamed(n): t.clone() for n, t in nn.state.safe_load(path).items()}, path)
    found, places = load(tmp_path)
    assert places["trunk.embeddings.norm.weight"] == "bert.embeddings.LayerNorm.gamma"
    for name, value in nn.state.get_state_dict(found).items():
        assert np.array_equal(value.numpy(), expected[name].numpy()), name


def test_what_is_nowhere_is_missing_by_its_own_name(tmp_path: Path) -> None:
    save(randomize(CASES["bert-mlm"].model()), tmp_path)
    path = str(tmp_path / "model.safetensors")
    kept = {n: t.clone() for n, t in nn.state.safe_load(path).items() if "embeddings.LayerNorm" not in n}
    nn.state.safe_save(kept, path)
    with pytest.raises(ModelError, match=r"2 tensors are missing.*bert.embeddings.LayerNorm.weight"):
        load(tmp_path)


def test_a_t5_with_a_head_of_its_own_reads_it(tmp_path: Path) -> None:
    save(randomize(CASES["t5-gated"].model()), tmp_path)
    path = str(tmp_path / "model.safetensors")
    file = {n: t.clone() for n, t in nn.state.safe_load(path).items()}
    assert "lm_head.weight" not in file
    tied, places = load(tmp_path)
    assert places["lm_head.weight"] == "shared.weight"
    assert np.array_equal(tied.lm_head.weight.numpy(), file["shared.weight"].numpy())
    nn.state.safe_save(file | {"lm_head.weight": file["shared.weight"] * 2}, path)
    own, _ = load(tmp_path)
    assert np.array_equal(own.lm_head.weight.numpy(), 2 * file["shared.weight"].numpy())


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ("bert-one-label", "BertModel"),
        ("distilbert-mlm", "DistilBertModel"),
        ("modernbert-mlm", "ModernBertModel"),
        ("t5", "T5EncoderModel"),
        ("clip", "CLIPTextModel"),
        ("clip", "CLIPVisionModel"),
        ("clip", "CLIPTextModelWithProjection"),
        ("clip", "CLIPVisionModelWithProjection"),
        ("resnet-labels", "ResNetModel"),
        ("convnext-labels", "ConvNextModel"),
        ("convnextv2-labels", "ConvNextV2Model"),
    ],
)
def test_a_part_of_a_model_is_read_from_the_file_of_the_whole(whole: str, part: str, tmp_path: Path) -> None:
    save(randomize(CASES[whole].model()), tmp_path)
    weights = hf.load_hf(tmp_path).weights()
    found = hf.load_hf(tmp_path, architecture=part).weights()
    assert found
    for name, value in found.items():
        prefixes = ("trunk.", "", "text_model." if "Text" in part else "vision_model.")
        same = next(weights[prefix + name] for prefix in prefixes if prefix + name in weights)
        assert np.array_equal(value.numpy(), same.numpy()), name


def test_a_pooler_that_a_file_lacks_is_missed(tmp_path: Path) -> None:
    save(randomize(CASES["roberta-labels"].model()), tmp_path)
    with pytest.raises(ModelError, match=r"2 tensors are missing.*pooler.dense.weight"):
        hf.load_hf(tmp_path, architecture="RobertaModel")


def test_files_are_written_under_the_new_names() -> None:
    names = architecture("BertForMaskedLM").names
    assert list(names.to_file({"trunk.embeddings.norm.weight": nn.LayerNorm(3).weight})) == [
        "bert.embeddings.LayerNorm.weight"
    ]
