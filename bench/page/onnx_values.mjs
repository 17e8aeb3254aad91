/**
 * Values for the inputs of an ONNX file, put into the file: then a run copies none of them. A value of a name that is
 * also an input is a default of that input. A runtime may neither fold nor rearrange it, as it may be given another;
 * but before version 4 of the format all values are constants.
 */

// onnx.TensorProto.DataType
const DATA_TYPES = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, float16: 10, float64: 11 };
const DEFAULTS = 4; // the first version with values that are defaults
// Numbers of fields: ModelProto's, GraphProto.initializer, and of TensorProto.
const IR_VERSION = 1;
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

/** The number in the varint at byte `at`, and where it ends. */
function varintAt(data, at) {
  let [value, scale] = [0, 1];
  for (; data[at] >= 128; at++, scale *= 128) value += (data[at] & 127) * scale;
  return [value + data[at] * scale, at + 1];
}

/** The version of the format that a file says it is in; 0 if it says none. */
export function irVersion(model) {
  let version = 0;
  for (let at = 0; at < model.length;) {
    const [tag, begin] = varintAt(model, at);
    const [value, end] = varintAt(model, begin);
    if (tag === 8 * IR_VERSION) version = value;
    at = tag % 8 === 2 ? end + value : end;
  }
  return version;
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
 * merge a message that comes in two parts, so the values are appended as a second part of the graph. Throws for a file
 * whose values would be constants.
 */
export function withValues(model, values) {
  const version = irVersion(model);
  if (version < DEFAULTS) throw new Error(`model: expected IR version ${DEFAULTS} or later, got ${version}`);
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
