/** The exports of the packages beside `create`: classes of errors, and types. */

export {
  ArgumentError,
  AxisError,
  CaptureError,
  DeviceError,
  DTypeError,
  FetchError,
  GradientError,
  OverflowError,
  ShapeError,
} from "./generated/errors";
export { NotImplementedError, PythonError } from "./errors";
export type * from "./index";
export { slice } from "./slice";
