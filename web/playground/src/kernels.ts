/** The kernel inspector: what a program launches, when, and what its kernels are made of, pass by pass. */

import type { Polygrad } from "polygrad";

import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import type { Explained, Launched } from "./inspected";
import inspector from "./kernels.py";
import { Passes } from "./passes";
import { session } from "./session";
import { rateOf, countOf, Timeline, timeOf } from "./timeline";

const PROGRAMS: Readonly<Record<string, string>> = {
  "matrix product": "a, b = Tensor.rand(256, 256), Tensor.rand(256, 256)\n(a @ b).relu()",
  softmax: "x = Tensor.rand(256, 1000)\nx.softmax(axis=1)",
  "layer normalisation": "x = Tensor.rand(64, 512)\nx.layernorm()",
  convolution:
    "image, weight = Tensor.rand(1, 8, 32, 32), Tensor.rand(16, 8, 3, 3)\nimage.conv2d(weight).relu()",
  attention:
    "q, k, v = (Tensor.rand(4, 64, 32).realize() for _ in range(3))\nq.scaled_dot_product_attention(k, v)",
  "training step": `from polygrad import compile_step, nn

layers = [nn.Linear(64, 128), Tensor.relu, nn.Linear(128, 10)]
optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=0.002)
x, y = Tensor.rand(64, 64), Tensor.randint(64, low=0, high=10)
step = compile_step(lambda m, x, y: x.sequential(m).cross_entropy(y), layers, optimizer, x, y)
step`,
};

/** The sessions that know the inspector's functions. */
const prepared = new WeakSet<Polygrad>();

async function ask(call: string): Promise<unknown> {
  const pg = await session();
  if (!prepared.has(pg)) await pg.python(inspector);
  prepared.add(pg);
  return JSON.parse(String(await pg.python(call)));
}

export function startKernels(): void {
  const [note, found, go] = [html("kernel-note"), html("kernel-found"), button("inspect")];
  const [facts, failure] = [html("kernel-facts"), html("kernel-failure")];
  const source = element("expression", HTMLTextAreaElement);
  const choice = element("expression-choice", HTMLSelectElement);
  for (const name of Object.keys(PROGRAMS)) choice.append(new Option(name, name));
  const passes = new Passes();
  const timeline = new Timeline((i) => void explain(i));
  html("timeline").append(timeline.element);
  html("passes").append(passes.element);
  let launched: Launched | undefined;
  let explained = new Map<number, Explained>(); // by the kernel's number
  let asked = 0;

  const fail = (error: unknown): void => {
    note.textContent = "";
    failure.replaceChildren(make("div", "failure", messageOf(error)));
  };

  /** Show the kernel of launch number `i`. */
  async function explain(i: number): Promise<void> {
    const launch = launched?.launches[i];
    if (!launched || !launch) return;
    const turn = ++asked;
    showFacts(launched, i);
    try {
      const known = explained;
      const kernel = known.get(launch.kernel) ?? ((await ask(`explained(${launch.kernel})`)) as Explained);
      known.set(launch.kernel, kernel);
      if (turn === asked) passes.show(kernel);
    } catch (error) {
      if (turn === asked) fail(error);
    }
  }

  function showFacts({ kernels, launches, peak }: Launched, i: number): void {
    const launch = launches[i];
    const kernel = launch && kernels[launch.kernel];
    if (!launch || !kernel) return;
    const { seconds } = launch;
    const share = (100 * kernel.flops) / seconds / peak;
    const rows: [string, string][] = [
      ["Kernel", kernel.name],
      ["Time", timeOf(seconds)],
      ["Arithmetic", kernel.flops > 0 ? rateOf(kernel.flops, seconds, "FLOP") : "none on floats"],
      [
        "Share of the peak",
        kernel.flops > 0 ? `${share < 10 ? share.toPrecision(2) : share.toFixed(0)} %` : "–",
      ],
      ["Memory", rateOf(kernel.bytes, seconds, "B")],
      [
        "Code",
        `${countOf(kernel.codeBytes)}B, ${kernel.parallel ? "for several threads" : "for one thread"}`,
      ],
    ];
    facts.replaceChildren(
      ...rows.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value))),
    );
  }

  const inspect = async (): Promise<void> => {
    if (go.disabled) return;
    go.disabled = true;
    note.textContent = "compiling and timing…";
    failure.replaceChildren();
    try {
      launched = (await ask(`launched(${JSON.stringify(source.value)})`)) as Launched;
      explained = new Map();
      const { launches, seconds, what, peak, rounds } = launched;
      const total = launches.reduce((sum, launch) => sum + launch.seconds, 0);
      const count = launches.length === 1 ? "1 launch" : `${launches.length} launches`;
      note.textContent =
        `${what}: ${count}, ${timeOf(total)} one by one, ${timeOf(seconds)} in one call ` +
        `(means of ${rounds}). Measured peak: ${rateOf(peak, 1, "FLOP")}.`;
      found.hidden = launches.length === 0;
      timeline.show(launched);
    } catch (error) {
      found.hidden = true;
      fail(error);
    } finally {
      go.disabled = false;
    }
  };

  const choose = (): void => {
    source.value = PROGRAMS[choice.value] ?? "";
    source.rows = source.value.split("\n").length + 1;
  };
  choice.addEventListener("change", () => {
    choose();
    void inspect();
  });
  source.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void inspect();
  });
  go.addEventListener("click", () => void inspect());
  choose();
  void inspect();
}
