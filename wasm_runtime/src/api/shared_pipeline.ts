/** `pipeline` of the packages: models in sessions of their own, of which there is one in a worker and one on this thread. */

import type { Polygrad } from "./api";
import type { ModelSource } from "./model_files";
import type { OptionsOf, Pipelines, Task } from "./pipeline_types";

/** Where the model runs. */
export interface SharedPipelineOptions {
  /** Whether it runs in a worker; true unless given. Otherwise this thread is busy while it computes. */
  readonly worker?: boolean;
}

/**
 * A model for a task, in a worker of its own: `create` is not needed. See `Polygrad.pipeline`.
 *
 *     const classifier = await pipeline("text-classification", "/models/sentiment");
 *     console.log(await classifier("I like it."));
 */
export type SharedPipeline = <T extends Task>(
  task: T,
  model: ModelSource,
  options?: OptionsOf<T> & SharedPipelineOptions,
) => Promise<Pipelines[T]>;

/** `pipeline` on sessions that `create` starts when they are first needed. A start that fails is tried again. */
export function sharedPipeline(create: (options: { worker: boolean }) => Promise<Polygrad>): SharedPipeline {
  const sessions = new Map<boolean, Promise<Polygrad>>();
  const open = (worker: boolean): Promise<Polygrad> => {
    let session = sessions.get(worker);
    if (session === undefined) {
      session = create({ worker });
      sessions.set(worker, session);
      session.catch(() => sessions.delete(worker));
    }
    return session;
  };
  return async (task, model, options) => {
    const { worker = true, ...others } = options ?? {};
    const session = await open(worker);
    return session.pipeline(task, model, others as typeof options);
  };
}
