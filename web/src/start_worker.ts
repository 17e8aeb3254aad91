/**
 * Starts module workers. A browser refuses a worker whose script is of another origin, so there a small worker of the
 * page's own origin, a blob, imports the script.
 */

/** A worker, and a way to hear why it failed. */
export interface StartedWorker {
  readonly worker: Worker;
  /** Calls `listener` with the reason when the worker has failed. */
  readonly failed: (listener: (reason: string) => void) => void;
}

/** The addresses of blobs, by the addresses of the scripts that they import. */
const blobs = new Map<string, string>();

function blobOf(script: string): string {
  let address = blobs.get(script);
  if (address === undefined) {
    const source = new Blob([`import ${JSON.stringify(script)};`], { type: "text/javascript" });
    blobs.set(script, (address = URL.createObjectURL(source)));
  }
  return address;
}

/** The directive of the page's Content-Security-Policy that refused an address, by the address that the browser told. */
const refusals = new Map<string, string>();
let isWatching = false;

function watchPolicy(): void {
  if (isWatching) return;
  isWatching = true;
  const target: EventTarget = typeof document === "undefined" ? globalThis : document;
  target.addEventListener("securitypolicyviolation", (event) => {
    const { blockedURI, effectiveDirective } = event as SecurityPolicyViolationEvent;
    refusals.set(blockedURI, effectiveDirective);
  });
}

/**
 * Why the worker `url` failed. A browser tells a page only the scheme of a blob that its policy refused, and nothing of
 * what the policy refuses to a worker, such as the script that a blob imports.
 */
function reasonOf(url: URL, isForeign: boolean, message: string): string {
  const directive = isForeign ? refusals.get("blob") : (refusals.get(url.href) ?? refusals.get(url.origin));
  if (directive === undefined && message) return message;
  const allowed = isForeign ? `blob: ${url.origin}` : "'self'";
  const failure =
    directive === undefined
      ? `${url.href} could not be loaded; a Content-Security-Policy has to`
      : `the page's Content-Security-Policy (${directive}) forbids ${url.href}:`;
  return `${failure} allow worker-src ${allowed}${isForeign ? ", or serve the files yourself: npx polygrad-assets FOLDER" : ""}`;
}

/** Start the module worker `url`. */
export function startWorker(url: URL): StartedWorker {
  const isForeign = url.origin !== location.origin;
  watchPolicy();
  const worker = new Worker(isForeign ? blobOf(url.href) : url, { type: "module" });
  return {
    worker,
    failed: (listener) => {
      worker.addEventListener("error", ({ message }) => {
        // The event that tells of a policy may come after this one.
        setTimeout(() => {
          listener(reasonOf(url, isForeign, message));
        });
      });
    },
  };
}

let hasTold = false;

/** Start a worker that runs kernels. If it fails, it takes part in no run; the first failure is told. */
export function startThread(url: URL): Worker {
  const { worker, failed } = startWorker(url);
  failed((reason) => {
    if (!hasTold) console.warn(`polygrad: kernels run on fewer threads: ${reason}`);
    hasTold = true;
  });
  return worker;
}
