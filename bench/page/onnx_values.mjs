/**
 * Values for the inputs of an ONNX file, put into the file: then a run copies none of them. A value of a name that is
 * also an input is a default of that input. A runtime may neither fold nor rearrange it, as it may be given another.
 */

// onnx.TensorProto.DataType
const DATA_TYPES = { float32: 1, uint8: 2, int8: 3, int32: 6, float16: 10, float64: 11 };
// Numbers of fields: ModelProto.graph, GraphProto.initializer, and of TensorProto.
const GRAPH = 7;
const INITIALIZER = 5;
const TENSOR = { dims: 1, dataType: 2, name: 8, rawData: 9 };

const size = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

/** A number as a varint. */
function varint(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) | 128);
  return Uint8Array.from([...out, value]);
}

/** A field of bytes, as the parts that it consists of. */
const bytes = (field, parts) => [varint(8 * field + 2), varint(size(parts)), ...parts];
const number = (field, value) => [varint(8 * field), varint(value)];

function tensor({ name, dtype, shape, data }) {
  if (!(dtype in DATA_TYPES))
    throw new Error(`dtype: expected one of ${Object.keys(DATA_TYPES)}, got ${dtype}`);
  return [
    ...shape.flatMap((length) => number(TENSOR.dims, length)),
    ...number(TENSOR.dataType, DATA_TYPES[dtype]),
    ...bytes(TENSOR.name, [new TextEncoder().encode(name)]),
    ...bytes(TENSOR.rawData, [new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]),
  ];
}

/**
 * The bytes of the file `model` (a Uint8Array) with `values`, a list of {name, dtype, shape, data}. Protocol Buffers
 * merge a message that comes in two parts, so the values are appended as a second part of the graph.
 */
export function withValues(model, values) {
  const initializers = values.flatMap((value) => bytes(INITIALIZER, tensor(value)));
  const parts = [model, ...bytes(GRAPH, initializers)];
  const out = new Uint8Array(size(parts));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
