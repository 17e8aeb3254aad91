/**
 * `polygrad-service-worker.js`: one script for both sides. In a page it registers itself, in a service worker it answers
 * requests. It knows nothing of tensors, and a site may have it without the rest of the package.
 *
 *     <script src="polygrad-service-worker.js" data-isolate data-offline></script>
 *
 * It lies beside the page: a service worker answers for its own folder and what is below it.
 */

import { install } from "./page";
import { serve, type WorkerScope } from "./worker";

if (typeof document === "undefined") serve(globalThis as unknown as WorkerScope);
else {
  const { currentScript } = document;
  void install(currentScript instanceof HTMLScriptElement ? currentScript : undefined);
}
