"""Small random models for pipelines, in one folder, and what transformers computes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import gguf_models
import numpy as np
import onnx
import safetensors.numpy
import tiny_text_models
import tokenizers as tk
import torch
import transformers
from model_checkpoints import randomize
from onnx import TensorProto, helper, numpy_helper

transformers.utils.logging.set_verbosity_error()

TEXTS = ["the cat sat on the mat .", "a red dog ran", "the mat"]
CHAT = [{"role": "user", "content": "Hi there"}]
PROMPTS = ["Once upon a time", "Hello", "The quick brown fox"]
LABELS = ["cat", "dog", "red mat"]
TEMPLATE = "the {} ."
SIZE = 16
_IMAGE_SETTINGS = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": SIZE, "width": SIZE},
    "resample": 2,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.5, 0.6, 0.7],
}
_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def make(target: Path) -> dict[str, Any]:
    """All models as folders of `target`, which are named by their task, and what is expected of each."""
    found = {
        "talker": _talker(target / "talker"),
        "embedder": _embedder(target / "embedder"),
        "classifier": _classifier(target / "classifier"),
        "masked": _masked(target / "masked"),
        "images": _images(target / "images"),
        "clip": _clip(target / "clip"),
        "speech": _speech(target / "speech"),
        "detector": _detector(target / "detector"),
        "onnx": _onnx_classifier(target / "onnx-classifier"),
    }
    _parts(target / "talker", target / "parts")
    _gguf(target)
    (target / "picture.json").write_text(json.dumps(picture(SIZE, SIZE).reshape(-1).tolist()))
    return found


def close(got: Any, wanted: Any) -> bool:
    """Equal, and numbers within 1e-4. Of objects, what is wanted; more may be there."""
    if isinstance(wanted, dict):
        return isinstance(got, dict) and all(close(got[k], v) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(close(*pair) for pair in zip(got, wanted, strict=True))
    if isinstance(wanted, float):
        return bool(abs(got - wanted) <= 1e-4 * max(1.0, abs(wanted)))
    return bool(got == wanted)


def _copy(folder: str, target: Path) -> None:
    shutil.copytree(folder, target)


def _talker(target: Path) -> dict[str, Any]:
    _copy(tiny_text_models.talker(), target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(target)
    model = transformers.AutoModelForCausalLM.from_pretrained(target).eval()

    def greedy(ids: list[int], count: int) -> list[int]:
        tokens = torch.tensor([ids])
        done = model.generate(tokens, max_new_tokens=count, do_sample=False, pad_token_id=0)
        return list(done[0, len(ids) :].tolist())

    chat = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    return {
        "greedy": [greedy(tokenizer(text)["input_ids"], 12) for text in PROMPTS],
        "chat": greedy(tokenizer(chat, add_special_tokens=False)["input_ids"], 12),
        "lengths": [len(tokenizer(text)["input_ids"]) for text in PROMPTS],
    }


def _parts(folder: Path, target: Path) -> None:
    """The talker in three files of weights, with an index."""
    target.mkdir()
    for path in folder.iterdir():
        if path.name != "model.safetensors":
            shutil.copy(path, target)
    state = safetensors.numpy.load_file(folder / "model.safetensors")
    names, places = sorted(state), {}
    for i in range(3):
        file = f"model-0000{i + 1}-of-00003.safetensors"
        part = {name: state[name] for name in names[i::3]}
        safetensors.numpy.save_file(part, target / file)
        places |= dict.fromkeys(part, file)
    index = {"metadata": {}, "weight_map": places}
    (target / "model.safetensors.index.json").write_text(json.dumps(index))


def _gguf(target: Path) -> None:
    """GGUF files: whole, and in three parts."""
    for name, kind, count in (("q4", "Q4_0", 0), ("q8-parts", "Q8_0", 8)):
        first, _ = gguf_models.files("llama", kind, count)
        (target / name).mkdir()
        for path in Path(first).parent.glob("*.gguf"):
            shutil.copy(path, target / name)


def _texts(tokenizer: Any) -> Any:
    return tokenizer(TEXTS, padding=True, return_tensors="pt", return_token_type_ids=False)


def _embedder(target: Path) -> Any:
    folder, tokenizer, model = tiny_text_models.embedder()
    _copy(folder, target)
    batch = _texts(tokenizer)
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][:, :, None].float()
    means = (states * mask).sum(1) / mask.sum(1)
    units = torch.nn.functional.normalize(states[:, 0])
    return {"mean": means.tolist(), "cls": units.tolist()}


def _classifier(target: Path) -> Any:
    folder, tokenizer, model = tiny_text_models.classifier()
    _copy(folder, target)
    with torch.no_grad():
        scores = model(**_texts(tokenizer)).logits.softmax(-1).tolist()
    return [_ranked(model.config.id2label, row) for row in scores]


def _ranked(names: dict[int, str], row: list[float]) -> list[dict[str, Any]]:
    return sorted(
        ({"label": names[i], "score": score} for i, score in enumerate(row)), key=lambda x: -x["score"]
    )


def _masked(target: Path) -> Any:
    folder, tokenizer, model = tiny_text_models.masked()
    _copy(folder, target)
    ids = tokenizer("the [MASK] sat on [MASK] .", return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        scores = model(**ids).logits[0].softmax(-1)
    rows = scores[ids["input_ids"][0] == tokenizer.mask_token_id].topk(3)
    return [
        [{"token": t, "score": s, "text": tokenizer.decode([t])} for t, s in zip(tokens, values, strict=True)]
        for tokens, values in zip(rows.indices.tolist(), rows.values.tolist(), strict=True)
    ]


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Noise of whole blocks, uint8 (height, width, 3)."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 3)).astype(np.uint8)


def _prepared(image: np.ndarray) -> torch.Tensor:
    """As the models see a picture that is of their size already."""
    mean, std = (np.array(_IMAGE_SETTINGS[k], np.float32) for k in ("image_mean", "image_std"))
    x = (image.astype(np.float32) / 255 - mean) / std
    return torch.tensor(x.transpose(2, 0, 1)[None])


def _write_images(target: Path) -> None:
    (target / "preprocessor_config.json").write_text(json.dumps(_IMAGE_SETTINGS))


def _images(target: Path) -> Any:
    config = transformers.ViTConfig(
        **_SIZES, image_size=SIZE, patch_size=4, id2label={0: "cat", 1: "dog", 2: "mat"}
    )
    model = randomize(transformers.ViTForImageClassification(config))
    model.save_pretrained(target)
    _write_images(target)
    with torch.no_grad():
        scores = model(pixel_values=_prepared(picture(SIZE, SIZE))).logits.softmax(-1)
    return _ranked(model.config.id2label, scores[0].tolist())


def _clip(target: Path) -> Any:
    _, tokenizer, _ = tiny_text_models.embedder()
    end = tokenizer.sep_token_id
    text = {**_SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": 20, "eos_token_id": end}
    vision = {**_SIZES, "image_size": SIZE, "patch_size": 4}
    config = transformers.CLIPConfig(
        text_config={**text, "bos_token_id": 2}, vision_config=vision, projection_dim=16
    )
    model = randomize(transformers.CLIPModel(config))
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    _write_images(target)
    texts = [TEMPLATE.replace("{}", label) for label in LABELS]
    batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        out = model(**batch, pixel_values=_prepared(picture(SIZE, SIZE)))
    return _ranked(dict(enumerate(LABELS)), out.logits_per_image[0].softmax(-1).tolist())


def _speech(target: Path) -> Any:
    config = transformers.WhisperConfig(
        vocab_size=270,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=80,
        max_source_positions=50,
        max_target_positions=40,
        decoder_start_token_id=1,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = randomize(transformers.WhisperForConditionalGeneration(config))
    model.save_pretrained(target)
    (target / "generation_config.json").write_text(json.dumps({"max_new_tokens": 8}))
    tokenizer = _byte_tokenizer(["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|notimestamps|>"]})
    tokenizer.save_pretrained(target)
    extractor = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=1)
    names = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    prefix = [tokenizer.convert_tokens_to_ids(name) for name in names]

    def spoken(samples: np.ndarray, begin: list[int]) -> list[int]:
        inputs = extractor(samples, sampling_rate=16000, return_tensors="pt").input_features
        tokens = list(begin)
        for _ in range(8):
            with torch.no_grad():
                scores = model(input_features=inputs, decoder_input_ids=torch.tensor([tokens])).logits
            tokens.append(int(scores[0, -1].argmax()))
            if tokens[-1] == 0:
                return tokens[len(begin) : -1]
        return tokens[len(begin) :]

    first, second = sound(16000), sound(8000, 7.0)
    return {
        "tokens": spoken(first, prefix[:1]),
        "english": spoken(first, prefix),
        "long": spoken(first, prefix[:1]) + spoken(second, prefix[:1]),
    }


def sound(count: int, frequency: float = 3.0) -> np.ndarray:
    """Samples of a tone, as cases make it, too."""
    return np.sin(np.arange(count) * frequency / 50).astype(np.float32)


def _byte_tokenizer(special: list[str]) -> Any:
    trained = tk.Tokenizer(tk.models.BPE())
    trained.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = tk.decoders.ByteLevel()
    alphabet = tk.pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator([], tk.trainers.BpeTrainer(special_tokens=special, initial_alphabet=alphabet))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=trained, eos_token="<|endoftext|>")


def _detector(target: Path) -> Any:
    """An ONNX file with the outputs of DETR: each of four queries sees a quarter of the picture's mean."""
    target.mkdir()
    rng = np.random.default_rng(5)
    weights = {
        "labels": rng.standard_normal((3, 4 * 4)).astype(np.float32) * 3,
        "boxes": rng.standard_normal((3, 4 * 4)).astype(np.float32),
        "rows": np.array([0, 4, 4], np.int64),
    }
    node = helper.make_node
    nodes = [
        node("GlobalAveragePool", ["pixel_values"], ["mean"]),
        node("Flatten", ["mean"], ["flat"]),
        node("MatMul", ["flat", "labels"], ["a"]),
        node("Reshape", ["a", "rows"], ["logits"]),
        node("MatMul", ["flat", "boxes"], ["b"]),
        node("Sigmoid", ["b"], ["c"]),
        node("Reshape", ["c", "rows"], ["pred_boxes"]),
        node("Cast", ["pixel_mask"], ["unused"], to=TensorProto.FLOAT),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "detector",
        [
            info("pixel_values", TensorProto.FLOAT, ["n", 3, "h", "w"]),
            info("pixel_mask", TensorProto.INT64, ["n", 64, 64]),
        ],
        [
            info("logits", TensorProto.FLOAT, ["n", 4, 4]),
            info("pred_boxes", TensorProto.FLOAT, ["n", 4, 4]),
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (target / "onnx").mkdir()
    onnx.save(model, target / "onnx" / "model.onnx")
    names = {0: "cat", 1: "dog", 2: "mat"}
    (target / "config.json").write_text(json.dumps({"model_type": "yolos", "id2label": names}))
    settings = {**_IMAGE_SETTINGS, "image_processor_type": "YolosImageProcessor", "do_resize": False}
    (target / "preprocessor_config.json").write_text(json.dumps(settings | {"do_pad": True}))
    image = picture(SIZE, SIZE)
    flat = _prepared(image).mean((2, 3)).numpy()
    outputs = type("Outputs", (), {})()
    outputs.logits = torch.tensor((flat @ weights["labels"]).reshape(1, 4, 4))
    outputs.pred_boxes = torch.tensor(1 / (1 + np.exp(-flat @ weights["boxes"]))).reshape(1, 4, 4)
    processor = transformers.YolosImageProcessor()
    (found,) = processor.post_process_object_detection(
        outputs, threshold=0.3, target_sizes=torch.tensor([[SIZE, SIZE]])
    )
    rows = zip(found["labels"].tolist(), found["scores"].tolist(), found["boxes"].tolist(), strict=True)
    objects = [
        {
            "label": names[label],
            "score": score,
            "box": dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)),
        }
        for label, score, box in rows
    ]
    return sorted(objects, key=lambda o: -o["score"])


def _onnx_classifier(target: Path) -> Any:
    """The mean embedding of a text's tokens, and a product: an ONNX file with a mask and 64-bit ids."""
    _, tokenizer, _ = tiny_text_models.embedder()
    target.mkdir()
    tokenizer.save_pretrained(target)
    rng = np.random.default_rng(9)
    table = rng.standard_normal((len(tokenizer), 8)).astype(np.float32)
    weight = rng.standard_normal((8, 3)).astype(np.float32) * 4
    node, info = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("Gather", ["table", "input_ids"], ["words"]),
        node("Cast", ["attention_mask"], ["there"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["there", "last"], ["column"]),
        node("Mul", ["words", "column"], ["seen"]),
        node("ReduceSum", ["seen", "one"], ["sum"], keepdims=0),
        node("ReduceSum", ["there", "one"], ["count"]),
        node("Div", ["sum", "count"], ["mean"]),
        node("MatMul", ["mean", "weight"], ["logits"]),
        node("Cast", ["token_type_ids"], ["unused"], to=TensorProto.FLOAT),
    ]
    ints = [info(n, TensorProto.INT64, ["n", "l"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    constants = {"table": table, "weight": weight, "one": np.array([1]), "last": np.array([-1])}
    graph = helper.make_graph(
        nodes,
        "classifier",
        ints,
        [info("logits", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(
        model,
        target / "model.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="model.onnx_data",
        size_threshold=64,
    )
    names = {0: "bad", 1: "so so", 2: "good"}
    config = {"model_type": "bert", "id2label": names, "vocab_size": len(tokenizer), "pad_token_id": 0}
    (target / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 32}))
    rows = []
    for text in TEXTS:
        logits = torch.tensor(table[tokenizer(text)["input_ids"]].mean(0) @ weight)
        rows.append(_ranked(names, logits.softmax(-1).tolist()))
    return rows
