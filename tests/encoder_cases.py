"""A small random model of each architecture that is not a plain decoder, and inputs for it."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import transformers as tf

tf.utils.logging.set_verbosity_error()
tf.utils.logging.disable_progress_bar()

VOCABULARY, LENGTH, BATCH = 99, 13, 3
_BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
_DISTILBERT = {
    "vocab_size": VOCABULARY,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
}
_MODERNBERT = {
    **_BERT,
    "num_hidden_layers": 4,
    "local_attention": 6,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
    "cls_token_id": 2,
    "sep_token_id": 1,
}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 12,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 0,
}
_IMAGES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 24,
    "patch_size": 8,
}
_CLIP_TEXT = {**_BERT, "max_position_embeddings": 20, "eos_token_id": 98, "bos_token_id": 97}
_WHISPER = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "num_mel_bins": 8,
    "max_source_positions": 15,
    "max_target_positions": 20,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "begin_suppress_tokens": None,
}
_RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16, 24], "depths": [1, 2, 1]}
_CONVNEXT = {"hidden_sizes": [8, 16, 24], "depths": [1, 2, 1], "num_stages": 3}
_DECODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def _generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def padded_tokens(padding: int = 0, side: str = "right") -> dict[str, np.ndarray]:
    """Tokens of texts of different lengths, and their mask."""
    ids = _generator("tokens").integers(5, VOCABULARY - 5, (BATCH, LENGTH))
    lengths = np.array([LENGTH, 4, 9])
    at = np.arange(LENGTH)
    mask = at < lengths[:, None] if side == "right" else at >= LENGTH - lengths[:, None]
    return {"input_ids": np.where(mask, ids, padding), "attention_mask": mask.astype(np.int64)}


def typed_tokens() -> dict[str, np.ndarray]:
    """Padded tokens of two types."""
    types = (np.arange(LENGTH) > 2).astype(np.int64)
    return padded_tokens() | {"token_type_ids": np.tile(types, (BATCH, 1))}


def token_labels() -> np.ndarray:
    """A token for each token, but not everywhere."""
    generator = _generator("labels")
    labels = generator.integers(0, 3, (BATCH, LENGTH))
    return np.where(generator.random((BATCH, LENGTH)) < 0.5, labels, -100)


def answers() -> np.ndarray:
    """Tokens for each input, and nothing behind them."""
    tokens = _generator("answers").integers(5, VOCABULARY, (BATCH, LENGTH))
    return np.where(np.arange(LENGTH) < np.array([[7], [LENGTH], [4]]), tokens, -100)


def one_label() -> np.ndarray:
    """One of three labels for each input."""
    return np.array([2, 0, 1])


def numbers() -> np.ndarray:
    """A number for each input."""
    return np.array([0.5, -1.0, 2.0], dtype=np.float32)


def several_labels() -> np.ndarray:
    """Any of three labels for each input."""
    return np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]], dtype=np.float32)


def images(size: int = 24) -> dict[str, np.ndarray]:
    """Random images."""
    pixels = _generator("images").standard_normal((BATCH, 3, size, size)).astype(np.float32)
    return {"pixel_values": pixels}


def texts_with_ends() -> dict[str, np.ndarray]:
    """Padded tokens, each text with an end."""
    inputs = padded_tokens(padding=1)
    ends = inputs["attention_mask"].sum(1) - 1
    inputs["input_ids"][np.arange(BATCH), ends] = 98
    return inputs


def two_texts() -> dict[str, np.ndarray]:
    """Padded tokens for an encoder, tokens for a decoder."""
    return padded_tokens() | {"decoder_input_ids": _generator("decoder").integers(0, VOCABULARY, (BATCH, 7))}


def sound() -> dict[str, np.ndarray]:
    """What a Whisper hears, and tokens."""
    heard = _generator("sound").standard_normal((BATCH, 8, 30)).astype(np.float32)
    return {"input_features": heard, "decoder_input_ids": two_texts()["decoder_input_ids"]}


@dataclass(frozen=True)
class Case:
    """`model`: makes it in torch. `inputs`: makes its inputs. `options`: other arguments."""

    model: Callable[[], Any]
    inputs: Callable[[], dict[str, np.ndarray]]
    options: dict[str, Any] = field(default_factory=lambda: {"output_hidden_states": True})


def _case(
    name: str, config: Any, inputs: Callable[[], dict[str, Any]], labels: Any = None, **options: Any
) -> Case:
    def all_inputs() -> dict[str, np.ndarray]:
        values = inputs()
        if labels is None:
            return values
        targets, mask = labels(), values.get("attention_mask")
        if mask is not None and labels is token_labels:
            targets = np.where(mask == 1, targets, -100)  # padding has no meaning to compare
        return values | {"labels": targets}

    # transformers writes into a configuration what it learns from labels
    return Case(
        lambda: getattr(tf, name)(copy.deepcopy(config)),
        all_inputs,
        options or {"output_hidden_states": True},
    )


def _roberta_tokens() -> dict[str, np.ndarray]:
    return padded_tokens(padding=1)


CASES = {
    "bert": _case("BertModel", tf.BertConfig(**_BERT), typed_tokens),
    "bert-left": _case("BertModel", tf.BertConfig(**_BERT), lambda: padded_tokens(side="left")),
    "bert-relu": _case("BertModel", tf.BertConfig(**_BERT, hidden_act="relu"), typed_tokens),
    "bert-mlm": _case("BertForMaskedLM", tf.BertConfig(**_BERT), typed_tokens, token_labels),
    "bert-mlm-untied": _case(
        "BertForMaskedLM", tf.BertConfig(**_BERT, tie_word_embeddings=False), typed_tokens, token_labels
    ),
    "bert-one-label": _case(
        "BertForSequenceClassification", tf.BertConfig(**_BERT, num_labels=3), typed_tokens, one_label
    ),
    "bert-number": _case(
        "BertForSequenceClassification", tf.BertConfig(**_BERT, num_labels=1), typed_tokens, numbers
    ),
    "bert-several-labels": _case(
        "BertForSequenceClassification", tf.BertConfig(**_BERT, num_labels=3), typed_tokens, several_labels
    ),
    "bert-numbers": _case(
        "BertForSequenceClassification",
        tf.BertConfig(**_BERT, num_labels=3, problem_type="regression"),
        typed_tokens,
        several_labels,
    ),
    "bert-two-labels": _case("BertForSequenceClassification", tf.BertConfig(**_BERT), typed_tokens),
    "bert-tokens": _case(
        "BertForTokenClassification", tf.BertConfig(**_BERT, num_labels=3), typed_tokens, token_labels
    ),
    "roberta": _case("RobertaModel", tf.RobertaConfig(**_BERT), _roberta_tokens),
    "roberta-left": _case(
        "RobertaModel", tf.RobertaConfig(**_BERT), lambda: padded_tokens(padding=1, side="left")
    ),
    "roberta-mlm": _case(
        "RobertaForMaskedLM", tf.RobertaConfig(**_BERT, hidden_act="relu"), _roberta_tokens, token_labels
    ),
    "roberta-mlm-untied": _case(
        "RobertaForMaskedLM",
        tf.RobertaConfig(**_BERT, tie_word_embeddings=False),
        _roberta_tokens,
        token_labels,
    ),
    "roberta-labels": _case(
        "RobertaForSequenceClassification",
        tf.RobertaConfig(**_BERT, num_labels=3),
        _roberta_tokens,
        one_label,
    ),
    "roberta-tokens": _case(
        "RobertaForTokenClassification",
        tf.RobertaConfig(**_BERT, num_labels=3),
        _roberta_tokens,
        token_labels,
    ),
    "xlm-roberta": _case("XLMRobertaModel", tf.XLMRobertaConfig(**_BERT), _roberta_tokens),
    "xlm-roberta-labels": _case(
        "XLMRobertaForSequenceClassification",
        tf.XLMRobertaConfig(**_BERT, num_labels=3),
        _roberta_tokens,
        one_label,
    ),
    "xlm-roberta-mlm": _case(
        "XLMRobertaForMaskedLM", tf.XLMRobertaConfig(**_BERT), _roberta_tokens, token_labels
    ),
    "xlm-roberta-tokens": _case(
        "XLMRobertaForTokenClassification",
        tf.XLMRobertaConfig(**_BERT, num_labels=3),
        _roberta_tokens,
        token_labels,
    ),
    "distilbert": _case("DistilBertModel", tf.DistilBertConfig(**_DISTILBERT), padded_tokens),
    "distilbert-mlm": _case(
        "DistilBertForMaskedLM", tf.DistilBertConfig(**_DISTILBERT), padded_tokens, token_labels
    ),
    "distilbert-labels": _case(
        "DistilBertForSequenceClassification",
        tf.DistilBertConfig(**_DISTILBERT, num_labels=3),
        padded_tokens,
        one_label,
    ),
    "distilbert-tokens": _case(
        "DistilBertForTokenClassification",
        tf.DistilBertConfig(**_DISTILBERT, num_labels=3),
        padded_tokens,
        token_labels,
    ),
    "modernbert": _case("ModernBertModel", tf.ModernBertConfig(**_MODERNBERT), padded_tokens),
    "modernbert-left": _case(
        "ModernBertModel", tf.ModernBertConfig(**_MODERNBERT), lambda: padded_tokens(side="left")
    ),
    "modernbert-mlm": _case(
        "ModernBertForMaskedLM", tf.ModernBertConfig(**_MODERNBERT), padded_tokens, token_labels
    ),
    "modernbert-biases": _case(
        "ModernBertForMaskedLM",
        tf.ModernBertConfig(
            **_MODERNBERT,
            attention_bias=True,
            mlp_bias=True,
            norm_bias=True,
            classifier_bias=True,
            decoder_bias=False,
            classifier_activation="silu",
            hidden_activation="gelu_pytorch_tanh",
        ),
        padded_tokens,
        token_labels,
    ),
    "modernbert-labels": _case(
        "ModernBertForSequenceClassification",
        tf.ModernBertConfig(**_MODERNBERT, num_labels=3),
        padded_tokens,
        one_label,
    ),
    "modernbert-mean": _case(
        "ModernBertForSequenceClassification",
        tf.ModernBertConfig(**_MODERNBERT, num_labels=3, classifier_pooling="mean"),
        padded_tokens,
        one_label,
    ),
    "modernbert-tokens": _case(
        "ModernBertForTokenClassification",
        tf.ModernBertConfig(**_MODERNBERT, num_labels=3),
        padded_tokens,
        token_labels,
    ),
    "t5": _case("T5ForConditionalGeneration", tf.T5Config(**_T5), two_texts),
    "t5-labels": _case("T5ForConditionalGeneration", tf.T5Config(**_T5), padded_tokens, answers),
    "t5-gated": _case(
        "T5ForConditionalGeneration",
        tf.T5Config(**_T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
        two_texts,
    ),
    "t5-silu": _case(
        "T5ForConditionalGeneration", tf.T5Config(**_T5, feed_forward_proj="gated-silu"), two_texts
    ),
    "t5-left": _case(
        "T5ForConditionalGeneration",
        tf.T5Config(**_T5),
        lambda: two_texts() | padded_tokens(side="left"),
    ),
    "t5-encoder": _case("T5EncoderModel", tf.T5Config(**_T5), padded_tokens),
    "vit": _case("ViTModel", tf.ViTConfig(**_IMAGES), images),
    "vit-pooler": _case(
        "ViTModel",
        tf.ViTConfig(**_IMAGES, qkv_bias=False, pooler_output_size=10, pooler_act="relu"),
        images,
    ),
    "vit-labels": _case(
        "ViTForImageClassification", tf.ViTConfig(**_IMAGES, num_labels=3), images, one_label
    ),
    "clip": _case(
        "CLIPModel",
        tf.CLIPConfig(text_config=_CLIP_TEXT, vision_config=_IMAGES, projection_dim=16),
        lambda: texts_with_ends() | images(),
        return_loss=True,
    ),
    "clip-text-alone": _case("CLIPTextModel", tf.CLIPTextConfig(**_CLIP_TEXT), texts_with_ends),
    "clip-images-alone": _case("CLIPVisionModel", tf.CLIPVisionConfig(**_IMAGES), images),
    "clip-text": _case(
        "CLIPTextModelWithProjection", tf.CLIPTextConfig(**_CLIP_TEXT, projection_dim=16), texts_with_ends
    ),
    "clip-text-old": _case(
        "CLIPTextModelWithProjection",
        tf.CLIPTextConfig(**{**_CLIP_TEXT, "eos_token_id": 2}, projection_dim=16),
        texts_with_ends,
    ),
    "clip-images": _case(
        "CLIPVisionModelWithProjection", tf.CLIPVisionConfig(**_IMAGES, projection_dim=16), images
    ),
    "whisper": _case("WhisperForConditionalGeneration", tf.WhisperConfig(**_WHISPER), sound),
    "whisper-labels": _case(
        "WhisperForConditionalGeneration",
        tf.WhisperConfig(**_WHISPER),
        lambda: {"input_features": sound()["input_features"]},
        answers,
    ),
    "resnet": _case("ResNetModel", tf.ResNetConfig(**_RESNET, layer_type="bottleneck"), lambda: images(33)),
    "resnet-strides": _case(
        "ResNetModel",
        tf.ResNetConfig(
            **_RESNET,
            layer_type="bottleneck",
            downsample_in_first_stage=True,
            downsample_in_bottleneck=True,
        ),
        lambda: images(40),
    ),
    "resnet-labels": _case(
        "ResNetForImageClassification",
        tf.ResNetConfig(**_RESNET, layer_type="basic", num_labels=3),
        lambda: images(32),
        one_label,
    ),
    "convnext": _case("ConvNextModel", tf.ConvNextConfig(**_CONVNEXT), lambda: images(32)),
    "convnext-labels": _case(
        "ConvNextForImageClassification",
        tf.ConvNextConfig(**_CONVNEXT, num_labels=3),
        lambda: images(32),
        one_label,
    ),
    "convnext-unscaled": _case(
        "ConvNextModel", tf.ConvNextConfig(**_CONVNEXT, layer_scale_init_value=0.0), lambda: images(32)
    ),
    "convnextv2": _case("ConvNextV2Model", tf.ConvNextV2Config(**_CONVNEXT), lambda: images(32)),
    "convnextv2-labels": _case(
        "ConvNextV2ForImageClassification",
        tf.ConvNextV2Config(**_CONVNEXT, num_labels=3),
        lambda: images(32),
        one_label,
    ),
    "llama-labels": _case(
        "LlamaForSequenceClassification",
        tf.LlamaConfig(**_DECODER, num_labels=3),
        padded_tokens,
        one_label,
    ),
    "llama-labels-left": _case(
        "LlamaForSequenceClassification",
        tf.LlamaConfig(**_DECODER),
        lambda: padded_tokens(side="left"),
    ),
    "qwen2-labels": _case(
        "Qwen2ForSequenceClassification",
        tf.Qwen2Config(**_DECODER, num_labels=1),
        padded_tokens,
        numbers,
    ),
    "qwen3-labels": _case(
        "Qwen3ForSequenceClassification",
        tf.Qwen3Config(**_DECODER, head_dim=10, num_labels=3),
        padded_tokens,
        several_labels,
    ),
    "gpt2-labels": _case(
        "GPT2ForSequenceClassification",
        tf.GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=40,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            num_labels=3,
        ),
        padded_tokens,
        one_label,
    ),
}
