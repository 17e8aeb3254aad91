/** The JavaScript API, for a host to build on: `createApi` on a `Connection`. */

export {
  createApi,
  createDirectApi,
  type Devices,
  type DirectPolygrad,
  type Polygrad,
  type TensorClass,
} from "./api";
export type { CapturedFunction, CompiledStep, StepProfile } from "./capture";
export { WorkerTransport, type FromWorker, type Port, type ToWorker } from "./client";
export type { NestedData } from "./data";
export { DirectTransport } from "./direct";
export type { DType, DTypeName, Nested, Scalar, TypedArray } from "./dtypes";
export { NotImplementedError, PythonError } from "./errors";
export { inspect } from "./format";
export type {
  EarlyStopping,
  FitData,
  FitModel,
  FitOptions,
  FitResult,
  FitState,
  LossName,
  Measure,
  MetricName,
} from "./fit";
export type {
  BatchAxis,
  DerivativeOptions,
  FunctionTransforms,
  InputGradients,
  JacobianOptions,
  PullBack,
  VmapOptions,
} from "./functional";
export * from "./generated/errors";
export type * from "./generated/nn";
export type { Tensor } from "./generated/tensor";
export { Handle } from "./handle";
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
export type { OnProgress, Progress } from "../progress";
export type { OpenedFile, ReadOptions } from "../source";
export type { FileLoadOptions, GgufFile, State } from "./state";
export { openUrl, type FileSource, type Host } from "./sources";
export type { ImageSource, Index, Layer, Operand, Size } from "./tensor_base";
export type { Variable } from "./variable";
