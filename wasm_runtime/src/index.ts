export {
  CompileError,
  FetchError,
  InternalError,
  OutOfMemoryError,
  PolygradError,
  ProgramError,
} from "./errors";
export { detectFeatures, type Feature } from "./features";
export { WasmHost } from "./host";
export type { KernelFunction } from "./kernel_calls";
export { LaunchList, type Kernel } from "./launches";
export { readProgram, type BufferSpec, type KernelSpec, type Program, type Role } from "./program";
export type { DType, TensorData } from "./arrays";
export { LoadedProgram, loadProgram } from "./runner";
