/** What the packages' `polygrad/runtime` have in common. */

export type { DType, NestedData, TensorData, TypedArray } from "./arrays";
export {
  CompileError,
  FetchError,
  InternalError,
  OutOfMemoryError,
  PolygradError,
  ProgramError,
} from "./errors";
export type { TensorInput, TensorSpec, TensorValue } from "./input";
export { Model, type Parameter } from "./model";
export type { Program, Size } from "./program";
export type { Progress } from "./progress";
export type { ByteSource, ModelOptions } from "./source";
