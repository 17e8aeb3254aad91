/** The errors of this runtime. Messages say subject, expected, got, and what to do next, as in Python. */

export class PolygradError extends Error {
  override name = "PolygradError";
}

/** Bytes that are not a Program of this version, or inputs that do not fit it. */
export class ProgramError extends PolygradError {
  override name = "ProgramError";
}

/** A file that was not signed by the key that was asked for. */
export class SignatureError extends PolygradError {
  override name = "SignatureError";
}

/** The engine rejects a kernel. */
export class CompileError extends PolygradError {
  override name = "CompileError";
}

/** The memory cannot grow to what a Program needs. */
export class OutOfMemoryError extends PolygradError {
  override name = "OutOfMemoryError";
}

/** A device that cannot be opened, or was lost. */
export class DeviceError extends PolygradError {
  override name = "DeviceError";
}

/** The place of a download that failed. */
export interface FetchFailure extends ErrorOptions {
  readonly url?: string | undefined;
  readonly status?: number | undefined;
}

/** A download that failed, or that is not what was asked for. */
export class FetchError extends PolygradError {
  override name = "FetchError";
  /** The address; undefined where Python made the request. */
  readonly url: string | undefined;
  /** The status of the answer; undefined where there was none. */
  readonly status: number | undefined;

  constructor(message: string, { url, status, ...options }: FetchFailure = {}) {
    super(message, options);
    this.url = url;
    this.status = status;
  }
}

/** A bug in polygrad. */
export class InternalError extends PolygradError {
  override name = "InternalError";

  constructor(message: string, options?: ErrorOptions) {
    super(message.startsWith("internal:") ? message : `internal: ${message}`, options);
  }
}
