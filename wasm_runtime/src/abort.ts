/** Work that an AbortSignal ends. */

/** What `work` gives; the signal's reason when that comes first, and then `stop` ends the work. */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  stop?: () => void,
): Promise<T> {
  if (signal === undefined) return work;
  let listener: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    listener = () => {
      reject(signal.reason as Error);
      stop?.();
    };
    if (signal.aborted) listener();
    else signal.addEventListener("abort", listener);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (listener !== undefined) signal.removeEventListener("abort", listener);
  }
}
