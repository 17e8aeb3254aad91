"""A decoder's GGUF file as a folder that transformers.js reads:

    python -m bench.onnx_decoders GGUF FOLDER [signed]

The graph is what onnxruntime's own tool for language models writes: GroupQueryAttention with the past as
inputs and outputs, fused norms, and products of 4 bits (MatMulNBits) for what the GGUF file has in Q4_0, of
the very numbers. For Q8_0 onnxruntime's quantizer makes products of 8-bit integers, which transformers.js
takes by default; they have one scale for a matrix, so these numbers are near the file's. The bytes of weights
are unsigned, or `signed`, which is faster in native code. Of a packed embedding the lookup has its numbers
in float32. Runs in the peers' environment.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from bench.onnx_graph import IR_VERSION, OPSET, Graph

BLOCK = 32  # numbers of a block of Q4_0: a float16 scale, and 16 bytes of two numbers each
FORMATS = (GGMLQuantizationType.F32, GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_0)
MICROSOFT = "com.microsoft"


class Weights:
    """The tensors of a GGUF file by name; matrices are (outputs, inputs)."""

    def __init__(self, path: Path) -> None:
        reader = GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.fields = {name: field.contents() for name, field in reader.fields.items()}

    def numbers(self, name: str) -> np.ndarray:
        """In float32."""
        tensor = self.tensors[name]
        shape = tuple(int(n) for n in reversed(tensor.shape))
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)

    def is_packed(self, name: str) -> bool:
        kind = self.tensors[name].tensor_type
        if kind not in FORMATS:
            raise ValueError(f"{name}: expected one of {', '.join(f.name for f in FORMATS)}, got {kind.name}")
        return kind is GGMLQuantizationType.Q4_0

    @property
    def has_bytes(self) -> bool:
        """Whether matrices are in Q8_0."""
        return any(t.tensor_type is GGMLQuantizationType.Q8_0 for t in self.tensors.values())

    def blocks(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A matrix in Q4_0 as MatMulNBits has it: bytes (outputs, blocks, 16), scales (outputs, blocks). GGUF
        has the first half of a block in the low bits of its bytes; MatMulNBits has neighbours in a byte."""
        raw = np.asarray(self.tensors[name].data)
        raw = raw.reshape(raw.shape[0], -1, 2 + BLOCK // 2)
        scales = np.ascontiguousarray(raw[..., :2]).view(np.float16)[..., 0].astype(np.float32)
        halves = np.concatenate([raw[..., 2:] & 15, raw[..., 2:] >> 4], axis=-1)
        return halves[..., ::2] | halves[..., 1::2] << 4, scales


class Decoder:
    """The graph of a decoder in the making."""

    def __init__(self, weights: Weights) -> None:
        self.weights, self.graph = weights, Graph()
        fields = weights.fields
        self.family = fields["general.architecture"]
        self.is_gpt2 = self.family == "gpt2"

        def field(name: str, default: Any = None) -> Any:
            return fields.get(f"{self.family}.{name}", default)

        self.hidden, self.layers = field("embedding_length"), field("block_count")
        self.heads, self.inner = field("attention.head_count"), field("feed_forward_length")
        self.kv_heads = field("attention.head_count_kv", self.heads)
        self.context, self.base = field("context_length"), field("rope.freq_base")
        norm = "attention.layer_norm_epsilon" if self.is_gpt2 else "attention.layer_norm_rms_epsilon"
        self.epsilon = field(norm)
        self.head = self.hidden // self.heads
        self.vocabulary = int(weights.tensors["token_embd.weight"].shape[-1])

    def fused(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.graph.op(op, *inputs, domain=MICROSOFT, **attributes)

    def constant(self, name: str) -> str:
        return self.graph.constant(self.weights.numbers(name))

    def whole(self, *values: int) -> str:
        return self.graph.constant(np.array(values, np.int64))

    def linear(self, x: str, name: str) -> str:
        weight = f"{name}.weight"
        if self.weights.is_packed(weight):
            packed, scales = self.weights.blocks(weight)
            rows, blocks = scales.shape
            operands = (self.graph.constant(packed), self.graph.constant(scales.reshape(-1)))
            sizes = {"K": blocks * BLOCK, "N": rows, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
            y = self.fused("MatMulNBits", x, *operands, **sizes)
        else:
            y = self.graph.op("MatMul", x, self.graph.constant(self.weights.numbers(weight).T))
        bias = f"{name}.bias"
        return self.graph.op("Add", y, self.constant(bias)) if bias in self.weights.tensors else y

    def norm(self, x: str, name: str) -> str:
        settings = {"axis": -1, "epsilon": self.epsilon}
        weight = self.constant(f"{name}.weight")
        if self.is_gpt2:
            return self.graph.op("LayerNormalization", x, weight, self.constant(f"{name}.bias"), **settings)
        return self.graph.op("SimplifiedLayerNormalization", x, weight, **settings)

    def attention(self, x: str, i: int) -> str:
        at, op = f"blk.{i}", self.graph.op
        if self.is_gpt2:
            ends = (self.whole(part * self.hidden) for part in range(4))
            qkv, marks, last = self.linear(x, f"{at}.attn_qkv"), list(ends), self.whole(2)
            q, k, v = (op("Slice", qkv, marks[part], marks[part + 1], last) for part in range(3))
        else:
            q, k, v = (self.linear(x, f"{at}.attn_{part}") for part in "qkv")
        past = (f"past_key_values.{i}.key", f"past_key_values.{i}.value")
        present = (f"present.{i}.key", f"present.{i}.value")
        name = f"attention{i}"
        op(
            "GroupQueryAttention", q, k, v, *past, self.seen, self.total, *self.tables,
            name=name, more=present, domain=MICROSOFT, num_heads=self.heads, kv_num_heads=self.kv_heads,
            do_rotary=int(not self.is_gpt2),
        )  # fmt: skip
        return self.linear(name, f"{at}.attn_output")

    def feed_forward(self, x: str, i: int) -> str:
        up = self.linear(x, f"blk.{i}.ffn_up")
        if self.is_gpt2:
            up = self.graph.op("Gelu", up, approximate="tanh")
        else:
            gate = self.linear(x, f"blk.{i}.ffn_gate")
            up = self.graph.op("Mul", self.graph.op("Mul", gate, self.graph.op("Sigmoid", gate)), up)
        return self.linear(up, f"blk.{i}.ffn_down")

    def rotation(self) -> tuple[str, str]:
        """Cosines and sines of all positions."""
        steps = self.base ** (-np.arange(0, self.head, 2) / self.head)
        angles = np.arange(self.context)[:, None] * steps
        cosines, sines = (f(angles).astype(np.float32) for f in (np.cos, np.sin))
        return self.graph.constant(cosines), self.graph.constant(sines)

    def model(self) -> onnx.ModelProto:
        op = self.graph.op
        self.seen = op("Cast", op("Sub", op("ReduceSum", "attention_mask", self.whole(1), keepdims=1),
                                  self.whole(1)), to=TensorProto.INT32)  # fmt: skip
        self.total = op("Cast", op("Gather", op("Shape", "attention_mask"), self.graph.constant(np.int64(1))),
                        to=TensorProto.INT32)  # fmt: skip
        self.tables = () if self.is_gpt2 else self.rotation()
        table = self.constant("token_embd.weight")
        x = op("Gather", table, "input_ids")
        if self.is_gpt2:
            x = op("Add", x, op("Gather", self.constant("position_embd.weight"), "position_ids"))
        for i in range(self.layers):
            x = op("Add", x, self.attention(self.norm(x, f"blk.{i}.attn_norm"), i))
            x = op("Add", x, self.feed_forward(self.norm(x, f"blk.{i}.ffn_norm"), i))
        last = self.linear(self.norm(x, "output_norm"), "token_embd")
        op("Identity", last, name="logits")
        return self._finished()

    def _finished(self) -> onnx.ModelProto:
        def value(name: str, dtype: int, *shape: Any) -> Any:
            return helper.make_tensor_value_info(name, dtype, shape)

        whole, real = TensorProto.INT64, TensorProto.FLOAT
        inputs = [
            value("input_ids", whole, "batch_size", "sequence_length"),
            value("attention_mask", whole, "batch_size", "total_sequence_length"),
        ]
        inputs += [value("position_ids", whole, "batch_size", "sequence_length")] if self.is_gpt2 else []
        outputs = [value("logits", real, "batch_size", "sequence_length", self.vocabulary)]
        for i in range(self.layers):
            for part in ("key", "value"):
                sizes = ("batch_size", self.kv_heads, "past_sequence_length", self.head)
                inputs.append(value(f"past_key_values.{i}.{part}", real, *sizes))
                outputs.append(
                    value(f"present.{i}.{part}", real, *sizes[:2], "total_sequence_length", self.head)
                )
        graph = helper.make_graph(self.graph.nodes, "decoder", inputs, outputs, self.graph.initializers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def config(self) -> dict[str, Any]:
        """config.json."""
        if self.is_gpt2:
            return {
                "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": self.hidden,
                "n_layer": self.layers, "n_head": self.heads, "n_positions": self.context,
                "vocab_size": self.vocabulary,
            }  # fmt: skip
        return {
            "model_type": self.family, "architectures": ["Qwen2ForCausalLM"], "hidden_size": self.hidden,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "intermediate_size": self.inner,
            "max_position_embeddings": self.context, "vocab_size": self.vocabulary,
            "rope_theta": self.base,
        }  # fmt: skip


def write(path: Path, folder: Path, signed: bool = False) -> None:
    """The whole folder; the model, which is the last file, is there when all are. `signed`: the bytes of
    weights."""
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    weights = Weights(path)
    decoder = Decoder(weights)
    model = decoder.model()
    (folder / "config.json").write_text(json.dumps(decoder.config()))
    unfinished = folder / "onnx" / "unfinished"
    onnx.save(model, unfinished)
    if weights.has_bytes:
        quantize_dynamic(
            unfinished,
            unfinished,
            weight_type=QuantType.QInt8 if signed else QuantType.QUInt8,
            op_types_to_quantize=["MatMul"],
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
        )
    unfinished.replace(folder / "onnx" / "model.onnx")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]), "signed" in sys.argv[3:])
