"""Pipelines of files that arrive in pieces: what they give is what transformers gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pipeline_models
import pytest
from pipeline_models import close

from polygrad import Tensor
from polygrad.engine.stopping import RunStopped, watched
from polygrad.errors import ArgumentError, ModelError
from polygrad.pipelines.binding import Loading, small_files
from polygrad.pipelines.tasks import TASKS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("pipelines")
    return folder, pipeline_models.make(folder)


def load(task: str, folder: Path, file: str = "model.safetensors", **options: Any) -> Any:
    """As JavaScript loads a model."""
    files: dict[str, bytes] = {}
    missing: list[str] = []
    while names := small_files(task, list(files), missing):
        for name in names:
            path = folder / name
            if path.is_file():
                files[name] = path.read_bytes()
            else:
                missing.append(name)
    loading = Loading(task, files, [file], options)
    data = (folder / file).read_bytes()
    feed(loading, 0, data)
    for i, name in enumerate(loading.external()):
        feed(loading, i + 1, (folder / name).read_bytes())
    return loading.finish()


def feed(loading: Loading, number: int, data: bytes) -> None:
    loading.begin(number, len(data))
    for i in range(0, len(data), 10_000):
        loading.feed(number, data[i : i + 10_000])


def test_answers_are_written_in_slices_of_any_length(made: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = made
    model = load("text-generation", folder / "talker")
    for seconds in (0.0, 1e9):
        answers = model.start(pipeline_models.PROMPTS, {"max_new_tokens": 12})
        tokens: dict[int, list[int]] = {}
        slices = 0
        while True:
            state = answers.advance(seconds)
            slices += 1
            for number, _, drawn, _ in state["pieces"]:
                tokens.setdefault(number, []).extend(drawn)
            if state["done"]:
                break
        assert [tokens[i] for i in range(3)] == expected["talker"]["greedy"]
        assert state["prompt_tokens"] == expected["talker"]["lengths"]
        assert slices == 1 if seconds else slices > 30


def test_cancelled_answers_leave_the_scheduler_to_others(made: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = made
    model = load("text-generation", folder / "talker")
    abandoned = model.start(["abc"], {"max_new_tokens": 400, "stop_tokens": []})
    abandoned.advance(0)
    abandoned.cancel()
    assert abandoned.advance(0)["done"]
    answers = model.start(pipeline_models.PROMPTS[:1], {"max_new_tokens": 12})
    (piece,) = answers.advance(1e9)["pieces"]
    assert piece[2] == expected["talker"]["greedy"][0]


def test_answers_that_are_stopped_at_any_program_leave_others_as_they_would_be(
    made: tuple[Path, dict[str, Any]],
) -> None:
    """Two answers share the batch; the Programs of both run in the slices of the one that is stopped."""
    folder, expected = made
    model = load("text-generation", folder / "talker", max_batch=2)
    wanted = expected["talker"]["greedy"]

    class Stopper:
        def __init__(self, programs: int) -> None:
            self.left = programs

        def asked(self) -> bool:
            self.left -= 1
            return self.left < 0

        def begin(self) -> bool:
            return not self.asked()

        def end(self) -> bool:
            return False

    def finish(answers: Any) -> list[int]:
        return [t for _, _, tokens, _ in answers.advance(1e9)["pieces"] for t in tokens]

    model.model.generate(pipeline_models.PROMPTS[:2], max_new_tokens=4)  # first runs are never stopped
    model.model.generate(pipeline_models.PROMPTS[:2], max_new_tokens=4)
    stops = 0
    for programs in range(20):
        other = model.start(pipeline_models.PROMPTS[:1], {"max_new_tokens": 12})
        first = other.advance(0)["pieces"][0][2]
        answers = model.start(pipeline_models.PROMPTS[1:2], {"max_new_tokens": 12})
        try:
            with watched(Stopper(programs)):
                answers.advance(1e9)
        except RunStopped:
            stops += 1
        assert answers.advance(0)["done"]
        assert first + finish(other) == wanted[0]
        assert finish(model.start(pipeline_models.PROMPTS[1:2], {"max_new_tokens": 12})) == wanted[1]
    assert stops > 10


def test_each_task_gives_what_transformers_gives_within_1e_4(made: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = made
    texts, image = pipeline_models.TEXTS, Tensor(pipeline_models.picture(16, 16))
    extractor = load("feature-extraction", folder / "embedder")
    assert close(extractor.embed(texts).tolist(), expected["embedder"]["mean"])
    extractor = load("feature-extraction", folder / "embedder", pooling="cls", normalize=True)
    assert close(extractor.embed(texts).tolist(), expected["embedder"]["cls"])
    assert close(load("text-classification", folder / "classifier").classify(texts), expected["classifier"])
    onnx = load("text-classification", folder / "onnx-classifier", "model.onnx")
    assert close(onnx.classify(texts), expected["onnx"])
    assert close(load("image-classification", folder / "images").classify([image])[0], expected["images"])
    zero_shot = load("zero-shot-image-classification", folder / "clip")
    labels, template = pipeline_models.LABELS, pipeline_models.TEMPLATE
    assert close(zero_shot.classify([image], labels, template)[0], expected["clip"])
    detector = load("object-detection", folder / "detector", "onnx/model.onnx")
    assert close(detector.detect([image], 0.3)[0], expected["detector"])
    speech = load("automatic-speech-recognition", folder / "speech")
    (piece,) = speech.start(Tensor(pipeline_models.sound(16000)), {}).advance(1e9)["pieces"]
    assert piece[2] == expected["speech"]["tokens"]


def test_a_language_needs_a_model_that_has_it(made: tuple[Path, dict[str, Any]]) -> None:
    speech = load("automatic-speech-recognition", made[0] / "speech").model
    assert len(speech.speech_prefix("en")) == 4
    with pytest.raises(ArgumentError, match="expected one that the model has"):
        speech.speech_prefix("xx")
    with pytest.raises(ArgumentError, match="task: expected transcribe or translate"):
        speech.speech_prefix("en", "sing")
    with pytest.raises(ArgumentError, match="task: expected a language with it"):
        speech.speech_prefix(None, "translate")


def test_models_and_options_that_do_not_fit_a_task_are_refused(made: tuple[Path, dict[str, Any]]) -> None:
    folder = made[0]
    with pytest.raises(ArgumentError, match="expected a task of text-generation"):
        small_files("summarization", [], [])
    with pytest.raises(ModelError, match="fill-mask: expected a model for it, got BertModel"):
        load("fill-mask", folder / "embedder")
    with pytest.raises(ArgumentError, match="fill-mask has no option pooling"):
        load("fill-mask", folder / "masked", pooling="cls")
    with pytest.raises(ArgumentError, match="quantize and dtype are for safetensors and GGUF"):
        load("text-classification", folder / "onnx-classifier", "model.onnx", quantize="int8")
    with pytest.raises(ModelError, match="no family of models does it here"):
        load("object-detection", folder / "images")
    for task in ("text-generation", "automatic-speech-recognition"):
        with pytest.raises(ModelError, match="ONNX files are for feature-extraction"):
            load(task, folder / "onnx-classifier", "model.onnx")


def test_small_files_are_those_of_the_task() -> None:
    for task, kind in TASKS.items():
        names = small_files(task, [], [])
        assert "config.json" in names
        assert ("preprocessor_config.json" in names) is ("images" in kind.purposes)
        assert ("tokenizer.json" in names) is ("text" in kind.purposes)
    assert "vocab.txt" in small_files("fill-mask", [], ["tokenizer.json"])
