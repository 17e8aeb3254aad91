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

/** The facts of a launch, named. */
function factsOf({ kernels, launches, peak }: Launched, i: number): [name: string, value: string][] {
  const launch = launches[i];
  const kernel = launch && kernels[launch.kernel];
  if (!launch || !kernel) return [];
  const { seconds } = launch;
  const share = (100 * kernel.flops) / seconds / peak;
  const percent = `${share < 10 ? share.toPrecision(2) : share.toFixed(0)} %`;
  return [
    ["Kernel", kernel.name],
    ["Time", timeOf(seconds)],
    ["Arithmetic", kernel.flops > 0 ? rateOf(kernel.flops, seconds, "FLOP") : "none on floats"],
    ["Share of the peak", kernel.flops > 0 ? percent : "–"],
    ["Memory", rateOf(kernel.bytes, seconds, "B")],
    ["Code", `${countOf(kernel.codeBytes)}B, ${kernel.parallel ? "for several threads" : "for one thread"}`],
  ];
}

/** A program's launches in a sentence. */
function summaryOf({ launches, seconds, what, peak, rounds }: Launched): string {
  const total = launches.reduce((sum, launch) => sum + launch.seconds, 0);
  const count = launches.length === 1 ? "1 launch" : `${launches.length} launches`;
  return (
    `${what}: ${count}, ${timeOf(total)} one by one, ${timeOf(seconds)} in one call ` +
    `(means of ${rounds}). Measured peak: ${rateOf(peak, 1, "FLOP")}.`
  );
}

/** The program: examples to choose from, and a text to change. */
class ProgramInput {
  readonly #source = element("expression", HTMLTextAreaElement);
  readonly #choice = element("expression-choice", HTMLSelectElement);

  /** `submit` is called when an example is chosen, and for Ctrl-Enter. */
  constructor(submit: () => void) {
    for (const name of Object.keys(PROGRAMS)) this.#choice.append(new Option(name, name));
    this.#choice.addEventListener("change", () => {
      this.#show();
      submit();
    });
    this.#source.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      submit();
    });
    this.#show();
  }

  get text(): string {
    return this.#source.value;
  }

  #show(): void {
    this.#source.value = PROGRAMS[this.#choice.value] ?? "";
    this.#source.rows = this.#source.value.split("\n").length + 1;
  }
}

/** The panel. */
class Kernels {
  readonly #note = html("kernel-note");
  readonly #found = html("kernel-found");
  readonly #facts = html("kernel-facts");
  readonly #failure = html("kernel-failure");
  readonly #go = button("inspect");
  readonly #input = new ProgramInput(() => void this.inspect());
  readonly #passes = new Passes();
  readonly #timeline = new Timeline((i) => void this.#explain(i));
  #launched: Launched | undefined;
  #explained = new Map<number, Explained>(); // by the kernel's number
  #asked = 0;

  constructor() {
    html("timeline").append(this.#timeline.element);
    html("passes").append(this.#passes.element);
    this.#go.addEventListener("click", () => void this.inspect());
  }

  /** Run the program, and show what it launches. */
  async inspect(): Promise<void> {
    if (this.#go.disabled) return;
    this.#go.disabled = true;
    this.#note.textContent = "compiling and timing…";
    this.#failure.replaceChildren();
    try {
      const launched = (await ask(`launched(${JSON.stringify(this.#input.text)})`)) as Launched;
      this.#launched = launched;
      this.#explained = new Map();
      this.#note.textContent = summaryOf(launched);
      this.#found.hidden = launched.launches.length === 0;
      this.#timeline.show(launched);
    } catch (error) {
      this.#found.hidden = true;
      this.#fail(error);
    } finally {
      this.#go.disabled = false;
    }
  }

  #fail(error: unknown): void {
    this.#note.textContent = "";
    this.#failure.replaceChildren(make("div", "failure", messageOf(error)));
  }

  /** Show the kernel of launch number `i`. */
  async #explain(i: number): Promise<void> {
    const launched = this.#launched;
    const launch = launched?.launches[i];
    if (!launched || !launch) return;
    const turn = ++this.#asked;
    this.#showFacts(launched, i);
    try {
      const known = this.#explained;
      const kernel = known.get(launch.kernel) ?? ((await ask(`explained(${launch.kernel})`)) as Explained);
      known.set(launch.kernel, kernel);
      if (turn === this.#asked) this.#passes.show(kernel);
    } catch (error) {
      if (turn === this.#asked) this.#fail(error);
    }
  }

  #showFacts(launched: Launched, i: number): void {
    const rows = factsOf(launched, i).map(([name, value]) =>
      make("div", "", make("dt", "", name), make("dd", "", value)),
    );
    this.#facts.replaceChildren(...rows);
  }
}

export function startKernels(): void {
  void new Kernels().inspect();
}
