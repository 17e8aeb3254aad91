"""`pipeline` in JavaScript, on every host: answers, vectors and labels are those of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf_models
import pipeline_models
import pytest
from javascript_compare import is_error
from javascript_hosts import FEWER_API_HOSTS, built, made_once, run_cases
from pipeline_models import close

from polygrad import hf
from polygrad.hf.tokenizer import Tokenizer

pytestmark = [pytest.mark.e2e, built]
ACTIVATIONS = ("float32", "int8")  # of products with packed weights: which, the engine's features decide
CASES = ("textGeneration", "encoders", "images", "speech", "sources", "limits")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models, with what is expected of them in expected.json."""

    def make(folder: Path) -> None:
        (folder / "expected.json").write_text(json.dumps(pipeline_models.make(folder)))

    return made_once(tmp_path_factory, "pipelines", make)


@pytest.fixture(scope="session")
def expected(made: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made / "expected.json").read_text())
    return found


@pytest.fixture(params=FEWER_API_HOSTS)
def results(request: pytest.FixtureRequest, package: Path, made: Path) -> dict[str, Any]:
    return run_cases(request.param, package, CASES, None, made)


def of_case(name: str) -> Any:
    """A fixture of the results of a case."""

    @pytest.fixture
    def found(results: dict[str, Any]) -> dict[str, Any]:
        assert "failed" not in results[name], results[name]
        return results[name]  # type: ignore[no-any-return]

    return found


text, encoders, images, speech, sources, limits = map(of_case, CASES)


# --- text


def decoded(folder: Path, tokens: list[int]) -> str:
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix == ".json"}
    return Tokenizer(files).decode(tokens)


def test_greedy_answers_are_those_of_transformers(
    text: dict[str, Any], expected: dict[str, Any], made: Path
) -> None:
    wanted = expected["talker"]
    assert text["all"] == wanted["greedy"] and text["chat"] == wanted["chat"]
    tokens = wanted["greedy"][0]
    answer = {"text": decoded(made / "talker", tokens), "tokens": tokens, "finishReason": "length"}
    assert text["answer"] == text["returned"] == answer | {"promptTokens": wanted["lengths"][0]}
    assert text["ids"] == 3
    assert text["about"] == ["text-generation", "Qwen2ForCausalLM"]


def test_a_stream_gives_the_text_of_the_answer_as_it_comes(text: dict[str, Any]) -> None:
    assert text["streamed"] == text["answer"]["text"]
    assert 1 <= text["pieces"] <= 12
    assert text["together"] == text["separate"]
    assert text["left"] and text["again"] == text["all"][1]


def test_draws_depend_on_the_seed_and_settings_arrive(text: dict[str, Any]) -> None:
    assert text["seeds"] == [True, False]
    assert text["several"] == [8, 8, 8]
    assert text["biased"] != text["answer"]["tokens"][0]


def test_a_signal_ends_an_answer_between_two_tokens(text: dict[str, Any]) -> None:
    assert is_error(text["aborted"], "RangeError", "enough") and text["short"]
    assert is_error(text["early"], "RangeError", "enough")
    assert text["timed"]["name"] == "TimeoutError"


def test_progress_is_that_of_the_weights(text: dict[str, Any], made: Path) -> None:
    assert text["progress"] == ["download", 1, (made / "talker" / "model.safetensors").stat().st_size]


def test_options_and_prompts_that_are_none_are_refused(text: dict[str, Any]) -> None:
    wrong = text["wrong"]
    assert is_error(wrong["option"], "ArgumentError", "got max_new_tokens")
    assert is_error(wrong["temperature"], "ArgumentError", "temperature: expected at least 0, got -1")
    assert is_error(wrong["tokens"], "ArgumentError", "token 100000 is not one of the model's")
    assert is_error(wrong["empty"], "ArgumentError", "got an empty array")
    assert is_error(wrong["several"], "ArgumentError", "expected one prompt")
    assert is_error(wrong["disposed"], "ArgumentError", "got one that was disposed of")


# --- encoders


def test_vectors_are_those_of_transformers_within_1e_4(
    encoders: dict[str, Any], expected: dict[str, Any]
) -> None:
    wanted = expected["embedder"]
    assert encoders["shapes"] == [[3, 32], [32], "float32"]
    assert close(encoders["vectors"], wanted["mean"]) and close(encoders["one"], wanted["mean"][1])
    assert close(encoders["cls"], wanted["cls"])


def test_labels_are_those_of_transformers_within_1e_4(
    encoders: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert close(encoders["classes"], expected["classifier"])
    assert close(encoders["best"], expected["classifier"][0][:1])
    assert encoders["labels"] == ["bad", "so so", "good"]


def test_masked_words_are_those_of_transformers_within_1e_4(
    encoders: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert encoders["mask"] == "[MASK]" and close(encoders["filled"], expected["masked"])


def test_an_onnx_file_with_external_data_gives_the_same_labels_within_1e_4(
    encoders: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert close(encoders["onnx"], expected["onnx"])


def test_models_that_cannot_do_a_task_are_refused(encoders: dict[str, Any]) -> None:
    wrong = encoders["wrong"]
    assert is_error(wrong["mask"], "ArgumentError", "at least one [MASK]")
    assert is_error(wrong["count"], "ArgumentError", "topK: expected an integer of at least 1, got 0")
    assert is_error(wrong["name"], "ArgumentError", "expected options among topK, signal, got topk")
    assert is_error(wrong["none"], "ArgumentError", "expected options among signal, got topK")
    assert is_error(wrong["pooling"], "ArgumentError", "pooling: expected one of cls")
    assert is_error(wrong["task"], "ModelError", "got BertModel, a model for feature-extraction")
    assert is_error(wrong["option"], "ArgumentError", "fill-mask has no option pooling")
    assert is_error(wrong["onnx"], "ModelError", "text-generation: ", "ONNX files are for feature-extraction")
    assert encoders["open"] == []  # also what was opened for these


# --- pictures and sounds


def test_labels_of_pictures_are_those_of_transformers_within_1e_4(
    images: dict[str, Any], expected: dict[str, Any]
) -> None:
    wanted = expected["images"]
    assert close(images["classes"], wanted) and close(images["tensor"], [wanted[:1]] * 2)
    assert all(close(found, wanted) for found in images.get("drawn", []))


def test_texts_of_pictures_are_those_of_transformers_within_1e_4(
    images: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert close(images["zeroShot"], expected["clip"])
    kept = [x for x in expected["clip"] if x["label"] != "red mat"]
    total = sum(x["score"] for x in kept)
    assert close(images["two"], [[{**x, "score": x["score"] / total} for x in kept]] * 2)


def test_objects_are_those_of_transformers_within_1e_4(
    images: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert len(expected["detector"]) > 1 and close(images["objects"], expected["detector"])
    assert images["file"] == []


def test_what_is_no_picture_is_refused(images: dict[str, Any], request: pytest.FixtureRequest) -> None:
    wrong = images["wrong"]
    assert is_error(wrong["template"], "ArgumentError", "hypothesisTemplate: expected a text with {}")
    assert is_error(wrong["kind"], "ArgumentError", "expected a picture, got a number")
    assert is_error(wrong["family"], "ModelError", "object-detection: no family of models does it here")
    is_page = any(name in request.node.name for name in ("chromium", "firefox"))
    kind = "TypeError" if is_page else "ArgumentError"
    assert is_error(wrong["undecodable"], kind, "that the browser decodes" if is_page else "only pages")


def test_sounds_are_written_down_as_by_transformers(
    speech: dict[str, Any], expected: dict[str, Any], made: Path
) -> None:
    wanted = expected["speech"]
    assert speech["seconds"] == 1
    assert speech["one"] == {
        "text": decoded(made / "speech", wanted["tokens"]),
        "tokens": wanted["tokens"],
    }
    assert speech["two"] == [wanted["tokens"]] * 2
    assert speech["english"] == wanted["english"] and speech["long"] == wanted["long"]


def test_what_is_no_sound_is_refused(speech: dict[str, Any], request: pytest.FixtureRequest) -> None:
    wrong = speech["wrong"]
    assert is_error(wrong["language"], "ArgumentError", "none with the token <|xx|>")
    assert is_error(wrong["option"], "ArgumentError", "transcribe: expected options among ", "got stop")
    assert is_error(wrong["kind"], "ArgumentError", "expected a Float32Array")
    assert is_error(wrong["signal"], "RangeError", "no")
    is_page = any(name in request.node.name for name in ("chromium", "firefox"))
    kind = "FetchError" if is_page else "ArgumentError"
    assert is_error(wrong["samples"], kind, "nowhere.wav" if is_page else "only pages decode")


# --- where models come from


def test_a_model_is_the_same_from_everywhere(
    sources: dict[str, Any], expected: dict[str, Any], made: Path
) -> None:
    assert set(map(tuple, sources["talker"].values())) == {tuple(expected["talker"]["greedy"][1][:6])}
    prompt = pipeline_models.PROMPTS[1]
    options = {"dtype": "float16", "quantize": "int8", "device": "WASM"}
    assert sources["packed"] in [
        list(hf.load_hf(made / "talker", activations=a, **options).generate(prompt, max_new_tokens=6).tokens)
        for a in ACTIVATIONS
    ]


def test_gguf_files_stay_packed_and_come_in_parts(sources: dict[str, Any]) -> None:
    for found, (kind, count) in ((sources["q4"], ("Q4_0", 0)), ({"parts": sources["parts"]}, ("Q8_0", 8))):
        file, _ = gguf_models.files("llama", kind, count)
        models = [hf.load_hf(file, device="WASM", activations=a) for a in ACTIVATIONS]
        wanted = [list(m.generate([5, 6, 7], max_new_tokens=6).tokens) for m in models]
        for name, (tokens, fraction) in found.items():
            assert tokens in wanted, name
            assert fraction == 1, name
        assert len({tuple(tokens) for tokens, _ in found.values()}) == 1


def test_the_files_of_a_model_share_the_limits_of_their_download(
    limits: dict[str, Any], expected: dict[str, Any]
) -> None:
    count, smaller = limits["parts"]
    assert count > 1 and smaller  # so no file alone exceeds the limit of all
    assert limits["enough"] == expected["talker"]["greedy"][1][:6]
    assert is_error(limits["weights"], "FetchError", "pipeline: ", "expected at most maxBytes, ")
    assert is_error(limits["file"], "FetchError", "expected at most maxBytes, 10 bytes, got ")
    assert is_error(limits["time"], "FetchError", "bytes arrived in 0.000001 s, and the file is not whole")
    assert is_error(limits["none"], "RangeError", "pipeline: maxBytes: expected a positive number, got 0")


def test_what_is_no_model_is_named(sources: dict[str, Any]) -> None:
    wrong = sources["wrong"]
    assert is_error(wrong["missing"], "ArgumentError", "expected one of the files model.safetensors, ")
    assert is_error(wrong["file"], "ArgumentError", "expected one of the files other.gguf, got none of them")
    assert is_error(wrong["cut"], "ModelError", "model.gguf")
    assert is_error(wrong["damaged"], "ModelError", "config.json: no JSON")
    assert is_error(
        wrong["kind"], "ArgumentError", "expected an address, a path, Files or bytes, got a number"
    )
    assert is_error(wrong["task"], "ArgumentError", "expected a task of text-generation", '"summarization"')
    assert is_error(wrong["option"], "ArgumentError", "got max_batch")
    assert is_error(wrong["signal"], "RangeError", "no")
    assert is_error(wrong["during"], "RangeError", "stop")
