/** Tells how loading gets on: by file, as the browser reports them. */

import type { ProgressEvent } from "../../wasm_runtime/src/api/index";

/** Run `start`, and tell `listener` of each file that was fetched meanwhile, and when it is done. */
export async function watchProgress<T>(
  listener: ((event: ProgressEvent) => void) | undefined,
  start: () => Promise<T>,
): Promise<T> {
  if (listener === undefined) return start();
  let loaded = 0;
  const tell = (entries: readonly PerformanceEntry[]): void => {
    for (const entry of entries as readonly PerformanceResourceTiming[]) {
      loaded += entry.encodedBodySize;
      listener({ stage: "loading", file: entry.name, loaded });
    }
  };
  const observer = new PerformanceObserver((list) => {
    tell(list.getEntries());
  });
  observer.observe({ type: "resource" });
  listener({ stage: "loading", loaded });
  try {
    const result = await start();
    tell(observer.takeRecords());
    listener({ stage: "ready", loaded });
    return result;
  } finally {
    observer.disconnect();
  }
}
