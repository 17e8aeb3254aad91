"""The tasks, and for each the class that is called: plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.image_classifiers import ImageClassifier
from polygrad.hf.image_text import ImageTextMatcher
from polygrad.hf.instances import HFInstance, LanguageModel
from polygrad.hf.pooling import Pooling, pooling_modes
from polygrad.hf.speech import SpeechRecognizer
from polygrad.hf.text_encoders import MaskedLanguageModel, TextClassifier, TextEncoder
from polygrad.pipelines.answers import Answers
from polygrad.pipelines.detection import ObjectDetector
from polygrad.tensor.tensor import Tensor

Scores = list[dict[str, Any]]


class Pipeline:
    """A model that is used for a task. `model_class`: of the Instances that can do it. `purposes`: what its
    small files are for, see `polygrad.hf.files.files_for`. `options`: those of its own."""

    model_class: ClassVar[type[HFInstance]]
    purposes: ClassVar[tuple[str, ...]]
    option_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: Any, **options: Any) -> None:
        self.model = model

    @property
    def about(self) -> dict[str, Any]:
        """What a user may want to know of the model."""
        return {"architecture": self.model.architecture.name}


class TextGeneration(Pipeline):
    """Goes on with texts, or answers in conversations."""

    model_class = LanguageModel
    purposes = ("model", "text", "answers", "conversations")

    def start(self, prompts: Sequence[Any], options: Mapping[str, Any]) -> Answers:
        """Answer prompts: texts, lists of tokens, conversations. Options are those of
        `LanguageModel.request`; `n` answers to each prompt. Raises ArgumentError, ModelError."""
        given = dict(options)
        count = given.pop("n", 1)
        if type(count) is not int or count < 1:
            raise ArgumentError(f"n: expected an integer of at least 1, got {count!r}")
        if "logit_bias" in given:
            given["logit_bias"] = {int(token): bias for token, bias in given["logit_bias"].items()}
        requests = [self.model.request(prompt, **given) for prompt in prompts]
        scheduler = self.model.scheduler
        return Answers(scheduler, [scheduler.submit(a) for r in requests for a in r.answers(count)])


class FeatureExtraction(Pipeline):
    """Vectors of texts. `pooling`, `normalize`: in the place of what the model's files say."""

    model_class = TextEncoder
    purposes = ("model", "text", "vectors")
    option_names = ("pooling", "normalize")

    def __init__(self, model: Any, pooling: str | None = None, normalize: bool | None = None) -> None:
        super().__init__(model)
        if pooling is not None or normalize is not None:
            own: Pooling = model.pooling
            if pooling is not None and pooling not in pooling_modes():
                raise ArgumentError(f"pooling: expected one of {', '.join(pooling_modes())}, got {pooling!r}")
            modes = own.modes if pooling is None else (pooling,)
            model.pooling = Pooling(modes, own.normalizes if normalize is None else normalize)

    def embed(self, texts: Sequence[Any]) -> Tensor:
        """See `TextEncoder.embed`."""
        vectors: Tensor = self.model.embed(texts)
        return vectors


class TextClassification(Pipeline):
    """Labels of texts."""

    model_class = TextClassifier
    purposes = ("model", "text")

    @property
    def about(self) -> dict[str, Any]:
        return super().about | {"labels": self.model.labels}

    def classify(self, texts: Sequence[Any], top_k: int | None = None) -> list[Scores]:
        """The labels of each text, the likeliest first; `top_k` of them."""
        return [_ranked(row, top_k) for row in self.model.classify(texts)]


class FillMask(Pipeline):
    """The words that are missing in texts."""

    model_class = MaskedLanguageModel
    purposes = ("model", "text")

    @property
    def about(self) -> dict[str, Any]:
        tokenizer = self.model.tokenizer
        mask = None if tokenizer is None else tokenizer.special_token("mask_token")
        return super().about | {"mask_token": mask}

    def fill(self, texts: Sequence[Any], top_k: int = 5) -> list[list[Scores]]:
        """For each text, and each mask in it, the likeliest tokens, the likeliest first."""
        predictions = [self.model.fill_mask(text, top_k) for text in texts]
        return [
            [[{"text": f.text, "score": f.probability, "token": f.token} for f in row] for row in rows]
            for rows in predictions
        ]


class ImageClassification(Pipeline):
    """Labels of pictures."""

    model_class = ImageClassifier
    purposes = ("model", "images")

    @property
    def about(self) -> dict[str, Any]:
        return super().about | {"labels": self.model.labels}

    def classify(self, images: Sequence[Tensor], top_k: int | None = None) -> list[Scores]:
        """The labels of each picture, the likeliest first; `top_k` of them."""
        return [_ranked(row, top_k) for row in self.model.classify(images)]


class ZeroShotImageClassification(Pipeline):
    """Which of some texts pictures show."""

    model_class = ImageTextMatcher
    purposes = ("model", "text", "images")

    def classify(self, images: Sequence[Tensor], labels: Sequence[str], template: str) -> list[Scores]:
        """Labels for each picture, the likeliest first. `template`: a text in which `{}` is the label."""
        if "{}" not in template:
            raise ArgumentError(f"hypothesisTemplate: expected a text with {{}} in it, got {template!r:.80}")
        rows = self.model.match(images, [template.replace("{}", label) for label in labels])
        return [_ranked(dict(zip(labels, row, strict=True)), None) for row in rows]


class SpeechRecognition(Pipeline):
    """The text of sound."""

    model_class = SpeechRecognizer
    purposes = ("model", "text", "answers")

    @property
    def about(self) -> dict[str, Any]:
        return super().about | {"seconds": self.model.seconds}

    def start(self, sound: Any, options: Mapping[str, Any]) -> Answers:
        """Write what is said in a sound, float samples, 16,000 a second. Options are those of
        `SequenceToSequence.request`, and `language` and `task`: see `SpeechRecognizer.speech_prefix`."""
        given = dict(options)
        language, task = given.pop("language", None), given.pop("task", None)
        if language is not None or task is not None:
            given["prefix"] = self.model.speech_prefix(language, task)
        return Answers(*self.model.submit([sound], self.model.request(**given)))


class ObjectDetection(Pipeline):
    """Objects in pictures."""

    model_class = ObjectDetector
    purposes = ("model", "images")

    @property
    def about(self) -> dict[str, Any]:
        return super().about | {"labels": self.model.labels}

    def detect(self, images: Sequence[Tensor], threshold: float) -> list[Scores]:
        """The objects of each picture whose scores are above `threshold`, the likeliest first: `label`,
        `score`, and `box` in pixels."""
        return [self.model.detect(image, threshold) for image in images]


TASKS: dict[str, type[Pipeline]] = {
    "text-generation": TextGeneration,
    "feature-extraction": FeatureExtraction,
    "text-classification": TextClassification,
    "fill-mask": FillMask,
    "image-classification": ImageClassification,
    "zero-shot-image-classification": ZeroShotImageClassification,
    "automatic-speech-recognition": SpeechRecognition,
    "object-detection": ObjectDetection,
}


def task_class(task: str) -> type[Pipeline]:
    """The class of a task. Raises ArgumentError for others."""
    if task not in TASKS:
        raise ArgumentError(f"pipeline: expected a task of {', '.join(TASKS)}, got {task!r:.80}")
    return TASKS[task]


def make_pipeline(task: str, model: HFInstance, options: Mapping[str, Any]) -> Pipeline:
    """A model for a task. Raises ModelError for a model that cannot do it, ArgumentError for options."""
    kind = task_class(task)
    unknown = next((name for name in options if name not in kind.option_names), None)
    if unknown is not None:
        raise ArgumentError(f"pipeline: {task} has no option {unknown}")
    if not isinstance(model, kind.model_class):
        raise _other_task(task, model)
    return kind(model, **options)


def _other_task(task: str, model: HFInstance) -> ModelError:
    task_of_model = next((name for name, kind in TASKS.items() if isinstance(model, kind.model_class)), None)
    is_for = f"a model for {model.architecture.task if task_of_model is None else task_of_model}"
    return ModelError(f"{task}: expected a model for it, got {model.architecture.name}, {is_for}")


def _ranked(scores: Mapping[str, float], top_k: int | None) -> Scores:
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        raise ArgumentError(f"topK: expected an integer of at least 1, got {top_k!r}")
    ranked = sorted(scores.items(), key=lambda item: -item[1])[:top_k]
    return [{"label": label, "score": score} for label, score in ranked]
