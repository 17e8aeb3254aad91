/** What the packages' `polygrad/runtime` have in common. */

export type { DType, NestedData, TensorData, TypedArray } from "./arrays";
export type { CachedFile, FileCache } from "./cache/file_cache";
export {
  CompileError,
  FetchError,
  InternalError,
  OutOfMemoryError,
  PolygradError,
  ProgramError,
  SignatureError,
} from "./errors";
export type { GenerateOptions, LanguageModel, Piece, Prompt } from "./generation/language_model";
export type { Sampling } from "./generation/sampling";
export type { Classifier, Encoder, TextOptions } from "./generation/text_readers";
export type { ChatOptions, Message, TextStream, Tokenizer, Tokenizers } from "./generation/tokenizer";
export type { TensorInput, TensorSpec, TensorValue } from "./input";
export { Model, type Parameter } from "./model";
export type { Program, Size } from "./program";
export type { Progress } from "./progress";
export type { ByteSource, ModelOptions, TextModelOptions } from "./source";
