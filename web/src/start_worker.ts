/** Start a module worker. Browsers forbid workers of another origin, so there a worker of our own imports the script. */
export function startWorker(url: URL): Worker {
  if (url.origin === location.origin) return new Worker(url, { type: "module" });
  const source = new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(source), { type: "module" });
}
