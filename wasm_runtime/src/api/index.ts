/** The JavaScript API, for a host to build on: `createApi` on a `Connection`. */

export {
  createApi,
  createDirectApi,
  type Devices,
  type DirectPolygrad,
  type Polygrad,
  type TensorClass,
} from "./api";
export type { CachedFile, FileCache } from "../cache/file_cache";
export type { CapturedFunction, CompiledStep, StepProfile } from "./capture";
export { WorkerTransport, type FromWorker, type Port, type ToWorker } from "./client";
export type { NestedData, ShapedData } from "./data";
export type { ParseCSV } from "./datasets/csv_records";
export type { Datasets } from "./datasets/datasets";
export type { BatchOptions, Examples } from "./datasets/examples";
export type { CSVOptions, CSVSource } from "./datasets/from_csv";
export type { Example, ExampleData, ExampleOptions } from "./datasets/from_examples";
export type { ImagesOptions, LabelledImage } from "./datasets/from_images";
export type { Items, ItemsOf } from "./datasets/item_source";
export { DirectTransport } from "./direct";
export type { DType, DTypeName, Nested, Scalar, TypedArray } from "./dtypes";
export { NotImplementedError, PythonError } from "./errors";
export { inspect } from "./format";
export type { EarlyStopping, FitOptions, FitResult, FitState } from "./fit";
export type { FitData, FitRows } from "./fit_batches";
export type { CheckpointOptions } from "./fit_checkpoints";
export type { FitModel, LossName, Measure, MetricName } from "./fit_steps";
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
export type {
  AnswerOptions,
  ChatMessage,
  Completion,
  GenerationOptions,
  Prompt,
  SamplingOptions,
} from "./generation";
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
  SizeBounds,
} from "./onnx";
export type { ImageInput } from "./pictures";
export type { ModelSource } from "./model_files";
export type {
  CallOptions,
  DetectedObject,
  DetectionOptions,
  FeatureExtractionOptions,
  FeatureExtractionPipeline,
  FillMaskOptions,
  FillMaskPipeline,
  ImageClassificationPipeline,
  LabelScore,
  MakePipeline,
  MaskFilling,
  ObjectDetectionPipeline,
  OptionsOf,
  PipelineOptions,
  Pipelines,
  RankOptions,
  SpeechRecognitionPipeline,
  Task,
  TextClassificationPipeline,
  TextGenerationPipeline,
  TextInput,
  Transcription,
  TranscriptionOptions,
  ZeroShotImageClassificationPipeline,
  ZeroShotOptions,
} from "./pipeline_types";
export type { ChartOptions, HistogramOptions, PictureOptions, Pictures } from "./plots";
export { SessionServer } from "./server";
export type { Connection } from "./session";
export { sharedPipeline, type SharedPipeline, type SharedPipelineOptions } from "./shared_pipeline";
export { slice, type Slice } from "./slice";
export type { OnProgress, Progress } from "../progress";
export type { OpenedFile, ReadOptions } from "../source";
export type { DecodedSound, SoundInput } from "./sounds";
export type { FileLoadOptions, GgufFile, State } from "./state";
export type { FileSource, Folder, Host } from "./sources";
export type { ImageSource, Index, Layer, Operand, Size } from "./tensor_base";
export type { Variable } from "./variable";
