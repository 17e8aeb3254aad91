/**
 * The service worker's side. It adds the headers that isolate a page, for hosts that send none of their own, and keeps
 * what the page loads, for when there is no network.
 */

import { settingsOf } from "./settings";

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

/** The global object of a service worker, of which TypeScript's types of pages know nothing. */
export interface WorkerScope {
  readonly location: { readonly search: string };
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
}

/** What the headers of its own response isolate. */
const ISOLATED: ReadonlySet<string> = new Set(["document", "iframe", "worker", "sharedworker"]);

/** The parts of an address that change with each release: digests of polygrad's archives, versions in a CDN's addresses. */
const RELEASE =
  /(?<=\/(?:applications|polygrad|stdlib))-[0-9a-f]{12}(?=\.zip)|(?<=\/(?:polygrad|pyodide))@[^/]+/g;

export function serve(scope: WorkerScope): void {
  const { isolate, offline } = settingsOf(Object.fromEntries(new URLSearchParams(scope.location.search)));
  const name = `polygrad-service-worker ${scope.registration.scope}`; // sites of one origin have a cache each

  const isolated = (request: Request, response: Response): Response => {
    if (isolate === undefined || response.type !== "basic" || !ISOLATED.has(request.destination)) {
      return response;
    }
    const { status, statusText } = response;
    const headers = new Headers(response.headers);
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    headers.set("Cross-Origin-Embedder-Policy", isolate);
    return new Response(response.body, { status, statusText, headers });
  };

  const answer = async (event: FetchEvent, isKept: boolean): Promise<Response> => {
    const { request } = event;
    let response: Response;
    try {
      response = isolated(request, await fetch(request));
    } catch (error) {
      const kept = isKept ? await find(name, request) : undefined;
      if (kept !== undefined) return kept;
      throw error;
    }
    // The status is 0 where another origin's server lets no page read its answer.
    if (isKept && response.status === 200 && !isTransient(request, response)) {
      event.waitUntil(keep(name, request, response.clone()));
    }
    return response;
  };

  scope.addEventListener("install", (event) => {
    event.waitUntil(scope.skipWaiting());
  });
  scope.addEventListener("activate", (event) => {
    event.waitUntil(Promise.all([scope.clients.claim(), offline ? undefined : caches.delete(name)]));
  });
  scope.addEventListener("fetch", (event) => {
    const { request } = event;
    if (!request.url.startsWith("http")) return;
    const isKept = offline && request.method === "GET" && !request.headers.has("range");
    // A page that answers a form is isolated, too: a page that is not reloads, which would send the form again.
    const isIsolated = isolate !== undefined && ISOLATED.has(request.destination);
    if (isKept || isIsolated) event.respondWith(answer(event, isKept));
  });
}

function isTransient(request: Request, response: Response): boolean {
  const control = response.headers.get("Cache-Control") ?? "";
  return request.cache === "no-store" || control.includes("no-store");
}

async function find(name: string, request: Request): Promise<Response | undefined> {
  return (await caches.open(name)).match(request, { ignoreVary: true });
}

/** Keep `response`, in the place of the same file of another release. Without room for it the page works as before. */
async function keep(name: string, request: Request, response: Response): Promise<void> {
  try {
    const cache = await caches.open(name);
    await cache.put(request, response);
    const file = request.url.replace(RELEASE, "");
    if (file === request.url) return;
    for (const { url } of await cache.keys()) {
      if (url !== request.url && url.replace(RELEASE, "") === file) await cache.delete(url);
    }
  } catch (error) {
    console.warn(`polygrad-service-worker: ${request.url} is not kept: ${String(error)}`);
  }
}
