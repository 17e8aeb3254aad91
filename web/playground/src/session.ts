/** The session of all demonstrations, in a worker. It starts when the first of them is opened. */

import type { Polygrad } from "polygrad";

import { messageOf } from "./failures";
import { showFailed, showStarted, showStarting } from "./status";

let started: Promise<Polygrad> | undefined;

async function start(): Promise<Polygrad> {
  try {
    const { create } = await import("polygrad"); // loaded late, so that a page without demonstrations is ready sooner
    const pg = await create({
      worker: true,
      baseURL: "polygrad",
      onProgress: ({ stage, fraction }) => {
        showStarting(stage, fraction);
      },
    });
    showStarted(pg.Device.default, await pg.getNumThreads());
    return pg;
  } catch (error) {
    showFailed(messageOf(error));
    started = undefined; // the next caller tries again
    throw error;
  }
}

/** polygrad. Rejects when it cannot be started. */
export function session(): Promise<Polygrad> {
  return (started ??= start());
}
