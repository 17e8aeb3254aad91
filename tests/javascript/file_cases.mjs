/** Files of tensors and the state of optimizers, case by case, as in cases.mjs. */

import { thrown } from "./case_helpers.mjs";
import { files } from "./file_data.mjs";

const lists = (values) => Promise.all(values.map((t) => t.tolist()));

/** A value with elements in the place of tensors. */
async function plain(x, Tensor) {
  if (x instanceof Tensor) return ((await x.ready()).dtype === "int64" ? x.cast("int32") : x).tolist();
  if (Array.isArray(x)) return Promise.all(x.map((part) => plain(part, Tensor)));
  if (typeof x !== "object" || x === null) {
    return typeof x === "bigint" || (typeof x === "number" && !Number.isFinite(x)) ? String(x) : x;
  }
  const parts = Object.entries(x).map(async ([key, part]) => [key, await plain(part, Tensor)]);
  return Object.fromEntries(await Promise.all(parts));
}

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

export const fileCases = {
  async files({ Tensor, nn }) {
    const { torchLoad, ggufLoad, tarExtract, zipExtract, safeLoad, safeSave, modelTo } = nn.state;
    const torch = await torchLoad(bytesOf(files.torch));
    torch.shared[1].assign(torch.shared[1].add(10)); // also what shares its memory
    const gguf = await ggufLoad(new Blob([bytesOf(files.gguf)]));
    const parts = await Promise.all([
      safeSave({ a: new Tensor([1, 2]) }),
      safeSave({ b: new Tensor([3]), c: new Tensor([[4]]) }),
    ]);
    const map = { c: "two.safetensors", a: "one.safetensors", b: "two.safetensors" };
    const index = new globalThis.File([JSON.stringify({ weight_map: map })], "model.safetensors.index.json");
    const escaped = new globalThis.File([JSON.stringify({ weight_map: { a: "../one" } })], "m.index.json");
    const linear = new nn.Linear(2, 1);
    const moved = modelTo(linear, { dtype: "float16" });
    return {
      torch: await plain(torch, Tensor),
      gguf: await plain(gguf, Tensor),
      tar: await plain(await tarExtract(bytesOf(files.tar)), Tensor),
      zip: await plain(await zipExtract(bytesOf(files.zip)), Tensor),
      shards: await plain(await safeLoad(parts), Tensor),
      moved: [moved === linear, (await linear.weight.ready()).dtype],
      pickle: await thrown(() => torchLoad(bytesOf(files.hostile))),
      cycle: await thrown(() => torchLoad(bytesOf(files.cycle))),
      cut: await thrown(() => ggufLoad(bytesOf(files.gguf).slice(0, 40))),
      noFolder: await thrown(() => safeLoad(index)),
      escaped: await thrown(() => safeLoad(escaped)),
      twice: await thrown(() => safeLoad([parts[0], parts[0]])),
      noIndex: await thrown(() => safeLoad(new globalThis.File(["{}"], "m.index.json"))),
    };
  },

  async optimizerState({ Tensor, optim }) {
    const train = (make, weight = new Tensor([1, -2], { requiresGrad: true })) => ({
      weight,
      opt: make([weight]),
    });
    const make = (params) => new optim.AdamW(params, 0.1);
    const take = ({ weight, opt }) =>
      Tensor.train(() => {
        opt.zeroGrad();
        weight.mul(weight).sum().backward();
        opt.step();
      });
    const first = train(make);
    take(first);
    const state = await first.opt.stateDict();
    const second = train(make, new Tensor(await first.weight.tolist(), { requiresGrad: true }));
    second.opt.loadStateDict(state);
    take(first);
    take(second);
    const schedule = new optim.StepLR(first.opt, 1, { gamma: 0.5 });
    schedule.step();
    const steps = Object.keys(await schedule.stateDict());
    const [a, b] = [new Tensor([1]), new Tensor([1])];
    const group = new optim.OptimizerGroup(new optim.SGD([a], 0.5), new optim.SGD([b], 0.25));
    const rates = [await group.lr.item()];
    group.lr = 0.125;
    rates.push(await group.lr.item());
    Tensor.train(() => {
      a.add(b).sum().backward();
      group.step();
    });
    const w = new Tensor([1, -2], { requiresGrad: true });
    const quasi = new optim.LBFGS([w], { lineSearchFn: "strong_wolfe" });
    let calls = 0;
    const closure = () => {
      calls++;
      quasi.zeroGrad();
      return w.sub(3).square().sum().backward();
    };
    const loss = await Tensor.train(() => quasi.stepWith(closure));
    const none = await thrown(() => quasi.stepWith());
    const values = new Tensor([3, 1, 3], { dtype: "int32" });
    const [distinct, counts] = await values.unique({ returnCounts: true });
    return {
      names: Object.keys(state),
      same: [await first.weight.tolist(), await second.weight.tolist()],
      steps,
      rates,
      stepped: await lists([a, b]),
      quasi: [await w.tolist(), await loss.item(), calls > 0],
      none,
      unique: await lists([await values.unique(), distinct, counts]),
    };
  },

  /** The names of all that a session has, and of its classes' members. */
  names(pg) {
    const names = [];
    const visit = (x, path) => {
      if (typeof x === "function") {
        for (let k = x; typeof k === "function" && k !== Function.prototype; k = Object.getPrototypeOf(k)) {
          for (const from of [k, k.prototype ?? {}]) {
            names.push(...Object.getOwnPropertyNames(from).map((name) => `${path}.${name}`));
          }
        }
      } else if (typeof x === "object" && x !== null && Object.getPrototypeOf(x) === Object.prototype) {
        for (const [name, value] of Object.entries(Object.getOwnPropertyDescriptors(x))) {
          names.push(path + name);
          visit(value.value, path === "" ? name : `${path}${name}`);
          if (typeof value.value === "object") visit(value.value, `${path}${name}.`);
        }
      }
    };
    visit(pg, "");
    return [...new Set(names)];
  },
};
