"""The architectures that exist here, by the names that configurations have."""

from __future__ import annotations

import importlib
from typing import Any

from polygrad.errors import ModelError
from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields

# The module of polygrad.models that has each; a module is imported when it is needed.
_MODULES = {
    "BertForMaskedLM": "bert",
    "BertForSequenceClassification": "bert",
    "BertForTokenClassification": "bert",
    "BertModel": "bert",
    "CLIPModel": "clip",
    "CLIPTextModel": "clip",
    "CLIPTextModelWithProjection": "clip",
    "CLIPVisionModel": "clip",
    "CLIPVisionModelWithProjection": "clip",
    "ConvNextForImageClassification": "convnext",
    "ConvNextModel": "convnext",
    "ConvNextV2ForImageClassification": "convnext",
    "ConvNextV2Model": "convnext",
    "DistilBertForMaskedLM": "distilbert",
    "DistilBertForSequenceClassification": "distilbert",
    "DistilBertForTokenClassification": "distilbert",
    "DistilBertModel": "distilbert",
    "GPT2ForSequenceClassification": "gpt2",
    "GPT2LMHeadModel": "gpt2",
    "Gemma2ForCausalLM": "gemma",
    "Gemma3ForCausalLM": "gemma",
    "GemmaForCausalLM": "gemma",
    "LlamaForCausalLM": "llama",
    "LlamaForSequenceClassification": "llama",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "ModernBertForMaskedLM": "modernbert",
    "ModernBertForSequenceClassification": "modernbert",
    "ModernBertForTokenClassification": "modernbert",
    "ModernBertModel": "modernbert",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen",
    "Qwen2ForSequenceClassification": "qwen",
    "Qwen2MoeForCausalLM": "qwen",
    "Qwen3ForCausalLM": "qwen",
    "Qwen3ForSequenceClassification": "qwen",
    "Qwen3MoeForCausalLM": "qwen",
    "ResNetForImageClassification": "resnet",
    "ResNetModel": "resnet",
    "RobertaForMaskedLM": "roberta",
    "RobertaForSequenceClassification": "roberta",
    "RobertaForTokenClassification": "roberta",
    "RobertaModel": "roberta",
    "SmolLM3ForCausalLM": "smollm3",
    "T5EncoderModel": "t5",
    "T5ForConditionalGeneration": "t5",
    "ViTForImageClassification": "vit",
    "ViTModel": "vit",
    "WhisperForConditionalGeneration": "whisper",
    "XLMRobertaForMaskedLM": "roberta",
    "XLMRobertaForSequenceClassification": "roberta",
    "XLMRobertaForTokenClassification": "roberta",
    "XLMRobertaModel": "roberta",
}


def architectures() -> list[str]:
    """The names of all architectures that can be loaded."""
    return sorted(_MODULES)


def module_of(name: str) -> str:
    """The module of polygrad.models that has an architecture. Raises ModelError, which lists all
    architectures."""
    if name not in _MODULES:
        raise ModelError(f"architecture {name!r} is not known: there are {', '.join(architectures())}")
    return _MODULES[name]


def architecture(name: str) -> Architecture:
    """The architecture of this name. Raises ModelError, which lists all architectures."""
    module: Any = importlib.import_module(f"polygrad.models.{module_of(name)}")
    match: Architecture = next(a for a in module.ARCHITECTURES if a.name == name)
    return match


def architecture_of(config: Fields) -> Architecture:
    """The architecture that a configuration names. Raises ModelError."""
    names = config.items("architectures", str)
    if len(names) != 1:
        raise config.refuse("architectures", "one name")
    return architecture(names[0])
