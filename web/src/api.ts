/** The public functions, for the address of the script beside which the package's files lie. */

import type { Polygrad } from "../../loader/src/polygrad";
import { load, type LoadOptions } from "./load";
import { folderOf } from "./places";
import { RemotePolygrad } from "./remote";

export interface Api {
  /** Start Python with polygrad on this thread. Long computations keep the page from responding. */
  readonly load: (options?: LoadOptions) => Promise<Polygrad>;
  /** Start it in a worker: the same calls, all awaitable, and the page stays responsive. */
  readonly loadWorker: (options?: LoadOptions) => Promise<RemotePolygrad>;
}

export function api(script: string | undefined): Api {
  return {
    load: async (options = {}) => load(options, folderOf(script)),
    loadWorker: async (options = {}) => RemotePolygrad.load(options, folderOf(script)),
  };
}
