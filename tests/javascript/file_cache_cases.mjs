/** What a program sees of the cache of files, in Node and in a page. */

/** Load the model at `url`: how often it was told of progress from the cache, an output, or the error's name. */
async function loadModel({ load, FetchError }, url, options = {}) {
  let last;
  try {
    const model = await load(url, { ...options, onProgress: (progress) => (last = progress) });
    const { y } = await model.run({ x: new Float32Array(4).fill(1) });
    return { y: Array.from(y.data), cached: last.cached ?? 0, total: last.total };
  } catch (error) {
    const isOfThisModule = error instanceof FetchError;
    return {
      error: isOfThisModule ? error.name : `another ${error.name}`,
      message: error.message,
      status: error.status,
    };
  }
}

/** `url`: of the server in file_cache.mjs. `digest`: of the model there. */
export const cases = {
  async first(runtime, url, digest) {
    const seen = async () => (await fetch(`${url}/seen`)).json();
    const model = `${url}/model.pgrd`;
    const steps = {};
    const note = async (name, result) => (steps[name] = { ...(await result), asked: await seen() });
    await fetch(`${url}/break`);
    await note("broken", loadModel(runtime, model));
    steps.partial = await runtime.cache.list();
    await note("resumed", loadModel(runtime, model));
    await note("cached", loadModel(runtime, model));
    await note("uncached", loadModel(runtime, model, { cache: false }));
    await note("digest", loadModel(runtime, model, { sha256: digest }));
    await note("known", loadModel(runtime, model, { sha256: digest }));
    await note("missing", loadModel(runtime, `${url}/missing.pgrd`));
    await note("wrong", loadModel(runtime, model, { sha256: digest.replace(/./g, "0") }));
    steps.deleted = [await runtime.cache.delete(model), await runtime.cache.list()];
    const together = [1, 2, 3].map(() => loadModel(runtime, model));
    steps.together = (await Promise.all(together)).map(({ y }) => y);
    await seen();
    steps.list = await runtime.cache.list();
    return steps;
  },

  /** In another process, or after the page was loaded anew. */
  async second(runtime, url) {
    const cached = await loadModel(runtime, `${url}/model.pgrd`);
    await runtime.cache.clear();
    return { cached, list: await runtime.cache.list() };
  },
};
