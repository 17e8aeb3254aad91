/** The public functions, for an address from which the package's files are loaded. */

import type { Polygrad } from "../../loader/src/polygrad";
import { load, type LoadOptions } from "./load";
import { RemotePolygrad } from "./remote";

export interface Api {
  /** Start Python with polygrad on this thread. Long computations keep the page from responding. */
  readonly load: (options?: LoadOptions) => Promise<Polygrad>;
  /** Start it in a worker: the same calls, all awaitable, and the page stays responsive. */
  readonly loadWorker: (options?: LoadOptions) => Promise<RemotePolygrad>;
}

export function api(base: string | URL): Api {
  return {
    load: (options = {}) => load(options, base),
    loadWorker: (options = {}) => RemotePolygrad.load(options, base),
  };
}
