/** The JavaScript API, for a host to build on: `createApi` on a `Connection`. */

export {
  createApi,
  type Devices,
  type Polygrad,
  type SafeLoadOptions,
  type State,
  type TensorClass,
} from "./api";
export type { CapturedFunction, CompiledStep } from "./capture";
export { WorkerTransport, type FromWorker, type Port, type ToWorker } from "./client";
export type { NestedData } from "./data";
export { DirectTransport } from "./direct";
export type { DType, DTypeName, Nested, Scalar, TypedArray } from "./dtypes";
export { NotImplementedError, PythonError } from "./errors";
export * from "./generated/errors";
export type * from "./generated/nn";
export type { Tensor } from "./generated/tensor";
export type { Pixels, TensorData, TensorOptions } from "./make";
export type { StateDict } from "./models";
export type {
  LoadOptions as ModelLoadOptions,
  ModelAttribute,
  ModelGraph,
  ModelInput,
  ModelNode,
  ModelOutput,
  ModelPort,
  NestedText,
  NodeTime,
  NodeTimes,
  OnnxModel,
  RunnableModel,
  ShapedData,
  SizeBounds,
} from "./onnx";
export { SessionServer } from "./server";
export type { Connection } from "./session";
export { slice, type Slice } from "./slice";
export { openUrl, type ByteProgress, type FileSource, type Host } from "./sources";
export type { ImageSource, Index, Layer, Operand, Size } from "./tensor_base";
export type { Variable } from "./variable";
