"""Exported models that read and write text, in Python: the tokens and values of their Instances."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hf_models
import numpy as np
import pytest
import tiny_text_models
from exported_text_models import COUNT, SAMPLINGS, TEXTS, TURNS, exported, model

from polygrad import Device, export, hf
from polygrad.errors import ArgumentError, ModelError, ProgramError
from polygrad.runtime.bundle import read_bundle


@pytest.fixture(autouse=True, scope="module")
def on_wasm() -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = "WASM"
    yield
    Device.DEFAULT = before


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """The Instance, the exported model, and its file."""
    instance = model("talker")
    path = exported(instance, tmp_path_factory.mktemp("talker") / "talker.pgrd")
    return instance, export.load_language_model(path, native=True), path


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_tokens_are_those_of_the_instance(sampling: str, talker: tuple[Any, Any, Path]) -> None:
    """Prompts in one chunk and in several, and a conversation, one after the other over one cache."""
    instance, loaded, _ = talker
    for prompt in ("hello é", list(range(40)), TURNS, [*range(40), 41]):
        options = {"max_new_tokens": COUNT, "stop_tokens": (), **SAMPLINGS[sampling]}
        assert loaded.generate(prompt, **options) == instance.generate(prompt, **options)


def test_the_answer_ends_as_the_model_s_files_and_options_say(talker: tuple[Any, Any, Path]) -> None:
    instance, loaded, _ = talker
    whole = loaded.generate("hello", max_new_tokens=20, stop_tokens=())
    assert whole.finish_reason == "length" and len(whole.tokens) == 20
    for options in ({"stop_tokens": [whole.tokens[3]]}, {"stop": whole.text[5:7]}, {"max_new_tokens": 3}):
        assert loaded.generate("hello", **options) == instance.generate("hello", **options)
    assert len(loaded.generate([1] * 250, stop_tokens=()).tokens) == 6  # the cache is full


def test_without_a_seed_each_answer_is_another(talker: tuple[Any, Any, Path]) -> None:
    answers = {talker[1].generate("hello", temperature=1.0, stop_tokens=()).tokens for _ in range(3)}
    assert len(answers) == 3


def test_an_answer_that_is_left_leaves_the_cache_right(talker: tuple[Any, Any, Path]) -> None:
    _, loaded, _ = talker
    options: dict[str, Any] = {"max_new_tokens": 12, "stop_tokens": ()}
    expected = loaded.generate("hello", **options)
    for _ in zip(range(4), loaded.stream([1, 2, 3, 4], **options)):
        pass
    assert loaded.generate("hello", **options) == expected


@pytest.mark.parametrize(
    ("prompt", "options", "error", "message"),
    [
        ([1] * 256, {}, ArgumentError, "prompt: 256 tokens, with room for 255"),
        ([999], {}, ArgumentError, "prompt: token 999 is not one of the model's 259"),
        ([], {}, ArgumentError, "prompt: expected at least one token"),
        ([1], {"top_p": 2.0}, ArgumentError, "top_p: expected more than 0, at most 1, got 2.0"),
        ([1], {"warmth": 2.0}, ArgumentError, "options of sampling are temperature"),
        ([1], {"log_probabilities": 2}, ArgumentError, "log_probabilities: an exported model has none"),
        ("hello", {"tools": [{}]}, ArgumentError, "tools: expected a list of messages"),
    ],
)
def test_what_does_not_fit_is_refused(
    prompt: Any, options: Any, error: type, message: str, talker: tuple[Any, Any, Path]
) -> None:
    with pytest.raises(error, match=message):
        talker[1].generate(prompt, **options)


@pytest.mark.parametrize("name", ["gpt2", "Q4_0", "Q8_0"])
def test_other_models_draw_the_tokens_of_the_instance(name: str, tmp_path: Path) -> None:
    instance = model(name)
    loaded = export.load_language_model(exported(instance, tmp_path / "m.pgrd"), native=True)
    for sampling in ("greedy", "top_k"):
        options = {"max_new_tokens": COUNT, "stop_tokens": (), **SAMPLINGS[sampling]}
        for prompt in ([5, 6, 7], list(range(3, 40))):
            assert loaded.generate(prompt, **options).tokens == instance.generate(prompt, **options).tokens


def test_packed_weights_stay_packed(tmp_path: Path) -> None:
    """A weight of Q4_0 takes 4.5 bits in the file; there is no copy of it in floats."""
    instance = model("Q4_0")
    data = exported(instance, tmp_path / "m.pgrd").read_bytes()
    planes = sum(t.nbytes() for t in instance.weights().values())
    assert len(read_bundle(data)[1]) < planes + 100_000
    floats = sum(4 * w.shape[0] * w.shape[1] for w in instance._packed().values())
    assert len(read_bundle(data)[1]) < floats // 2


def test_on_cpu_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "DEFAULT", "CPU")
    instance = model("talker")
    loaded = export.load_language_model(exported(instance, tmp_path / "m.pgrd"), native=True)
    options = {"max_new_tokens": COUNT, "stop_tokens": (), **SAMPLINGS["top_k"]}
    assert loaded.generate("hello", **options) == instance.generate("hello", **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", hf_models.DECODERS)
def test_every_family_draws_the_tokens_of_the_instance(name: str, tmp_path: Path) -> None:
    test_other_models_draw_the_tokens_of_the_instance(name, tmp_path)


@pytest.mark.parametrize("what", ["embed", "classify"])
def test_texts_have_the_values_of_the_instance_within_1e_6(what: str, tmp_path: Path) -> None:
    source = tiny_text_models.embedder if what == "embed" else tiny_text_models.classifier
    instance = hf.load_hf(source()[0])
    instance.export(tmp_path / "m.pgrd")
    load = export.load_text_encoder if what == "embed" else export.load_text_classifier
    loaded = load(tmp_path / "m.pgrd", native=True)
    texts = [*TEXTS, [2, 4, 5, 3]]
    expected, got = getattr(instance, what)(texts), getattr(loaded, what)(texts)
    if what == "classify":
        assert [list(x) for x in got] == [list(x) for x in expected]
        expected, got = ([list(x.values()) for x in xs] for xs in (expected, got))
    else:
        expected, got = expected.numpy(), got.numpy()
    np.testing.assert_allclose(got, expected, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"texts\[1\]: expected ids of the 15 tokens, got 99"):
        getattr(loaded, what)([[1], [99]])


def test_each_loader_names_the_right_one_for_another_file(
    tmp_path: Path, talker: tuple[Any, Any, Path]
) -> None:
    with pytest.raises(ProgramError, match=r"load: expected an exported step, .*: use load_language_model"):
        export.load(talker[2], native=True)
    with pytest.raises(ProgramError, match=r"load_text_encoder: .*text-generation: use load_language_model"):
        export.load_text_encoder(talker[2], native=True)
    talker[0].export(tmp_path / "step.pgrd", input_ids=[[1, 2, 3]])  # an example: the forward pass
    assert "logits" in export.load(tmp_path / "step.pgrd", native=True).run(input_ids=np.int32([[1, 2, 3]]))
    with pytest.raises(ProgramError, match=r"load_language_model: .*got an exported step: use load"):
        export.load_language_model(tmp_path / "step.pgrd", native=True)


def test_a_damaged_file_is_refused(tmp_path: Path, talker: tuple[Any, Any, Path]) -> None:
    data = talker[2].read_bytes()
    for damaged in (data[:-7], data[:100], data + b"\0", b"", data[:-7] + b"\xff" * 8):
        with pytest.raises(ProgramError):
            export.load_language_model(damaged, native=True)


def test_without_a_tokenizer_there_are_token_ids_alone(tmp_path: Path) -> None:
    instance = model("talker")
    expected = instance.generate([1, 2, 3], max_new_tokens=8, stop_tokens=()).tokens
    instance.tokenizer = None
    loaded = export.load_language_model(exported(instance, tmp_path / "m.pgrd"), native=True)
    answer = loaded.generate([1, 2, 3], max_new_tokens=8, stop_tokens=())
    assert (answer.tokens, answer.text) == (expected, "")
    with pytest.raises(ModelError, match="prompt: text needs a tokenizer"):
        loaded.generate("hello")
    with pytest.raises(ModelError, match="stop: text needs a tokenizer"):
        loaded.generate([1], stop="a")


def test_licence_and_card_are_in_the_file_and_where_the_model_is_saved(tmp_path: Path) -> None:
    config = {
        "architectures": ["BertModel"],
        "vocab_size": 20,
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 16,
    }
    about = {"LICENSE": b"MIT", "README.md": "---\nlicense: mit\n---\n# \u00e9".encode()}
    instance = hf.from_config(config, about)
    instance.export(tmp_path / "model.pgrd")
    assert read_bundle((tmp_path / "model.pgrd").read_bytes())[0].files == about
    assert export.load_text_encoder(tmp_path / "model.pgrd").tokenizer is None
    instance.save(tmp_path / "folder")
    again = hf.load_hf(tmp_path / "folder")
    again.metadata = {
        "general.license": "mit",
        "general.alignment": 32,
        "llama.block_count": 2,
    }  # of a GGUF file
    again.export(tmp_path / "again.pgrd")
    general = b'{\n  "general.license": "mit"\n}'
    assert read_bundle((tmp_path / "again.pgrd").read_bytes())[0].files == {**about, "general.json": general}
