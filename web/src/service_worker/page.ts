/** The page's side: it registers the script as a service worker, and reloads the page once where that is needed. */

import { addressOf, settingsOf } from "./settings";

/** What says that the page was reloaded already, in the storage of the tab. */
const RELOADED = "polygrad-service-worker";

const warn = (reason: string): void => {
  console.warn(`polygrad-service-worker: ${reason}`);
};

/** Resolves when `worker` answers requests. */
async function activated(worker: ServiceWorker): Promise<void> {
  if (worker.state === "activated") return;
  await new Promise<void>((resolve, reject) => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated") resolve();
      else if (worker.state === "redundant") reject(new Error("the service worker could not be installed"));
    });
  });
}

/**
 * Register the service worker that `script` is: the tag, or undefined for a script that is a module or was imported. A
 * page that was loaded without the service worker is reloaded, so that all its requests go through it; once, since a
 * page in a frame of another, for instance, is never isolated.
 */
export async function install(script: HTMLScriptElement | undefined): Promise<void> {
  try {
    if (!script?.src) {
      warn("expected a script tag with src, got a module or an inline script");
      return;
    }
    const settings = settingsOf(script.dataset);
    if (!("serviceWorker" in navigator)) {
      warn(`the page ${location.origin} may have no service worker: expected one of https: or localhost`);
      return;
    }
    const isComplete =
      navigator.serviceWorker.controller !== null &&
      (settings.isolate === undefined || globalThis.crossOriginIsolated);
    const registration = await navigator.serviceWorker.register(addressOf(script.src, settings));
    const worker = registration.installing ?? registration.waiting ?? registration.active;
    if (worker !== null) await activated(worker);
    if (isComplete) {
      sessionStorage.removeItem(RELOADED);
    } else if (sessionStorage.getItem(RELOADED) === null) {
      sessionStorage.setItem(RELOADED, "yes");
      location.reload();
    } else {
      warn("the page is not cross-origin isolated after a reload; a page in a frame never is");
    }
  } catch (error) {
    warn(String(error));
  }
}
