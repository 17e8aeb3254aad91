/** A module worker. One from another origin is forbidden, so there a worker of our own imports it. */
export function startWorker(url: URL): Worker {
  if (url.origin === location.origin) return new Worker(url, { type: "module" });
  const source = new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(source), { type: "module" });
}
