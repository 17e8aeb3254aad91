// Generated from the API manifest by scripts/generate_api.mjs (`make api`): do not edit.

import { PolygradError } from "../../errors";
export {
  CompileError,
  FetchError,
  InternalError,
  OutOfMemoryError,
  PolygradError,
  ProgramError,
} from "../../errors";

/** Shapes that do not fit each other or the operation. */
export class ShapeError extends PolygradError {
  override name = "ShapeError";
}

/** An axis (or an index along one) outside the tensor's dimensions. */
export class AxisError extends PolygradError {
  override name = "AxisError";
}

/** An unknown dtype, or one that the operation does not take. */
export class DTypeError extends PolygradError {
  override name = "DTypeError";
}

/** An argument of the wrong kind or value. */
export class ArgumentError extends PolygradError {
  override name = "ArgumentError";
}

/** An integer that does not fit the tensor's dtype. */
export class OverflowError extends PolygradError {
  override name = "OverflowError";
}

/** A gradient that does not exist: a non-scalar root, an integer leaf, an op without a derivative. */
export class GradientError extends PolygradError {
  override name = "GradientError";
}

/** A matrix that an operation cannot take: a singular one to invert, say. */
export class LinAlgError extends PolygradError {
  override name = "LinAlgError";
}

/** A NaN, in a result or in a gradient, found because somebody looked for it. */
export class AnomalyError extends PolygradError {
  override name = "AnomalyError";
}

/** A device that is unknown or not available on this host; says what to install. */
export class DeviceError extends PolygradError {
  override name = "DeviceError";
}

/**
 * Memory whose contents are lost: a run that was interrupted twice, or failed, has written a part of
 * it.
 */
export class InterruptedWriteError extends PolygradError {
  override name = "InterruptedWriteError";
}

/** A run that has not ended within its time, and was ended. */
export class RunTimeoutError extends PolygradError {
  override name = "RunTimeoutError";
}

/** A decision of how to compute a kernel that does not apply to it. */
export class OptError extends PolygradError {
  override name = "OptError";
}

/** A file that was not signed by the key that was asked for. */
export class SignatureError extends PolygradError {
  override name = "SignatureError";
}

/** A damaged ONNX file, an op that does not exist here, or a node whose inputs do not fit. */
export class OnnxError extends PolygradError {
  override name = "OnnxError";
}

/**
 * A configuration, a checkpoint or a tokenizer that is damaged, contradicts itself, or is of a kind that
 * does not exist here.
 */
export class ModelError extends PolygradError {
  override name = "ModelError";
}

/**
 * A captured function that does what a replay cannot, or a replay with other arguments than the
 * captured.
 */
export class CaptureError extends PolygradError {
  override name = "CaptureError";
}

/**
 * Several processes that do not work together: an engine that is missing, or one that reports an
 * error.
 */
export class DistributedError extends PolygradError {
  override name = "DistributedError";
}

/**
 * Another process that has ended, does not answer, or does something else. `ranks`: its number, or
 * theirs.
 */
export class RankError extends PolygradError {
  override name = "RankError";
}
