/** What a package exports beside `create`: the errors' classes, and the types. */

export {
  ArgumentError,
  AxisError,
  CaptureError,
  DeviceError,
  DTypeError,
  GradientError,
  OverflowError,
  ShapeError,
} from "./generated/errors";
export { NotImplementedError, PythonError } from "./errors";
export type * from "./index";
export { slice } from "./slice";
