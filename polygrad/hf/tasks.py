"""Which Instance a model gets, by the task of its Architecture."""

from __future__ import annotations

from polygrad.hf.image_classifiers import ImageClassifier
from polygrad.hf.image_text import ImageTextMatcher
from polygrad.hf.instances import HFInstance, LanguageModel
from polygrad.hf.sequence_to_sequence import SequenceToSequence
from polygrad.hf.speech import SpeechRecognizer
from polygrad.hf.text_encoders import MaskedLanguageModel, TextClassifier, TextEncoder

_CLASSES: dict[str, type[HFInstance]] = {
    "causal-lm": LanguageModel,
    "text-to-text": SequenceToSequence,
    "speech-to-text": SpeechRecognizer,
    "image-classification": ImageClassifier,
    "image-text": ImageTextMatcher,
    "masked-lm": MaskedLanguageModel,
    "text-classification": TextClassifier,
    "text-features": TextEncoder,
}


def instance_class(task: str) -> type[HFInstance]:
    """The class of Instances for a task; those without one of their own have `forward` alone."""
    return _CLASSES.get(task, HFInstance)
