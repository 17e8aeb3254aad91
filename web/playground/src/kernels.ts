/**
 * The kernel inspector: what a program launches, when, which lines made each kernel, what it is made of pass by pass, and
 * what other Opts or another device make of it.
 */

import { Comparison } from "./comparison";
import { DeviceChoice } from "./devices";
import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import type { Explained, Launched } from "./inspected";
import { KERNEL_PROGRAMS, type KernelProgram } from "./kernel_programs";
import { KernelWorker, ProgramError, Stopped } from "./kernel_worker";
import { Passes } from "./passes";
import { supportOf } from "./programs";
import { SourceView } from "./source_view";
import { rateOf, countOf, Timeline, timeOf } from "./timeline";

/** The facts of a launch, named. */
function factsOf({ kernels, launches, peak }: Launched, i: number): [name: string, value: string][] {
  const launch = launches[i];
  const kernel = launch && kernels[launch.kernel];
  if (!launch || !kernel) return [];
  const { seconds } = launch;
  const share = peak === null ? 0 : (100 * kernel.flops) / seconds / peak;
  const percent = `${share < 10 ? share.toPrecision(2) : share.toFixed(0)} %`;
  return [
    ["Kernel", kernel.name],
    ["Time", timeOf(seconds)],
    ["Arithmetic", kernel.flops > 0 ? rateOf(kernel.flops, seconds, "FLOP") : "none on floats"],
    ["Share of the peak", share > 0 ? percent : "–"],
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
    `(means of ${rounds}).${peak === null ? "" : ` Measured peak: ${rateOf(peak, 1, "FLOP")}.`}`
  );
}

/** The program: examples to choose from, and a text to change. */
class ProgramInput {
  readonly #choice = element("kernel-program", HTMLSelectElement);
  readonly #source: SourceView;
  readonly #submit: () => void;

  /** `submit` is called when an example is chosen, and for Ctrl-Enter; `edited` when the text was changed. */
  constructor(submit: () => void, edited: () => void) {
    this.#submit = submit;
    this.#source = new SourceView(html("kernel-source"), "program", { run: submit, edited });
    for (const [label, programs] of Object.entries(KERNEL_PROGRAMS)) {
      const group = document.createElement("optgroup");
      group.label = label;
      group.append(...programs.map(({ file, title }) => new Option(title, file)));
      this.#choice.append(group);
    }
    this.#choice.addEventListener("change", () => void this.open());
  }

  /** The program that is chosen. */
  get program(): KernelProgram {
    const all = Object.values(KERNEL_PROGRAMS).flat();
    const chosen = all.find(({ file }) => file === this.#choice.value);
    if (chosen === undefined) throw new Error(`internal: no program ${this.#choice.value}`);
    return chosen;
  }

  get view(): SourceView {
    return this.#source;
  }

  /** Open the program that is chosen, and submit it. */
  async open(): Promise<void> {
    const { file, language, source } = this.program;
    const support = await supportOf(language);
    if (this.program.file !== file) return; // another was chosen meanwhile
    this.#source.open(file, source, support);
    this.#submit();
  }
}

/** The lines that made a kernel, to go to. */
class Lines {
  readonly #source: SourceView;

  constructor(source: SourceView) {
    this.#source = source;
  }

  /** The lines of a launch as buttons, marked in the source. */
  show({ launches }: Launched, i: number): HTMLElement {
    const places = launches[i]?.places ?? [];
    this.#source.mark(places.map(({ line }) => line));
    const seen = new Set<string>();
    const buttons = places.flatMap(({ line, gradient }) => {
      const words = `${gradient ? "gradient of line" : "line"} ${line}`;
      if (seen.has(words)) return [];
      seen.add(words);
      const go = make("button", "line-link", words, make("code", "", this.#source.textOf(line).trim()));
      go.addEventListener("click", () => {
        this.#source.goToLine(line);
        this.#source.focus();
      });
      return [go];
    });
    return make("div", "line-links", ...(buttons.length > 0 ? buttons : ["none of this program"]));
  }
}

/** The panel. */
class Kernels {
  readonly #note = html("kernel-note");
  readonly #found = html("kernel-found");
  readonly #facts = html("kernel-facts");
  readonly #lines = html("kernel-lines");
  readonly #failure = html("kernel-failure");
  readonly #go = button("inspect");
  readonly #stop = button("stop-inspecting");
  readonly #device = new DeviceChoice(element("kernel-device", HTMLSelectElement), () => {
    this.#restart();
    void this.inspect();
  });
  readonly #worker = new KernelWorker(this.#device.device);
  readonly #input = new ProgramInput(
    () => void this.inspect(),
    () => {
      this.#note.textContent = "Edited. Compile it to see its kernels.";
    },
  );
  readonly #links = new Lines(this.#input.view);
  readonly #passes = new Passes();
  readonly #timeline = new Timeline((i) => void this.#explain(i));
  readonly #comparison = new Comparison((...of) => this.#worker.variant(...of));
  #launched: Launched | undefined;
  #explained = new Map<number, Explained>(); // by the kernel's number
  #runs = 0;
  #asked = 0;

  constructor() {
    html("timeline").append(this.#timeline.element);
    html("passes").append(this.#passes.element);
    this.#go.addEventListener("click", () => void this.inspect());
    this.#stop.addEventListener("click", () => {
      this.#restart();
    });
    void this.#input.open();
  }

  /** Run the program, and show what it launches. */
  async inspect(): Promise<void> {
    if (this.#go.disabled) return;
    const run = ++this.#runs;
    this.#setRunning(true);
    this.#note.textContent = "compiling and timing…";
    this.#failure.replaceChildren();
    this.#comparison.clear();
    try {
      const { language } = this.#input.program;
      const launched = await this.#worker.inspect(language, this.#input.view.text);
      if (run !== this.#runs) return;
      this.#launched = launched;
      this.#explained = new Map();
      this.#note.textContent = summaryOf(launched);
      this.#found.hidden = launched.launches.length === 0;
      this.#timeline.show(launched);
    } catch (error) {
      if (run !== this.#runs) return;
      this.#found.hidden = true;
      this.#fail(error);
    } finally {
      if (run === this.#runs) this.#setRunning(false);
    }
  }

  #setRunning(isRunning: boolean): void {
    this.#go.disabled = isRunning;
    this.#stop.disabled = !isRunning;
  }

  /** Start a fresh worker on the chosen device. */
  #restart(): void {
    this.#runs++;
    this.#asked++;
    this.#worker.restart(this.#device.device);
    this.#setRunning(false);
    this.#found.hidden = true;
    this.#note.textContent = "stopped";
  }

  #fail(error: unknown): void {
    this.#note.textContent = "";
    if (error instanceof Stopped) return;
    const line = error instanceof ProgramError ? error.failure.line : undefined;
    const where = line === undefined ? "" : ` (line ${line})`;
    this.#failure.replaceChildren(make("div", "failure", `${messageOf(error)}${where}`));
    if (line !== undefined) this.#input.view.mark([line]);
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
      const kernel = known.get(launch.kernel) ?? (await this.#worker.explained(launch.kernel));
      known.set(launch.kernel, kernel);
      if (turn !== this.#asked) return;
      this.#passes.show(kernel);
      this.#comparison.show(launch.kernel, kernel.device);
    } catch (error) {
      if (turn === this.#asked) this.#fail(error);
    }
  }

  #showFacts(launched: Launched, i: number): void {
    const rows = factsOf(launched, i).map(([name, value]) =>
      make("div", "", make("dt", "", name), make("dd", "", value)),
    );
    this.#facts.replaceChildren(...rows);
    this.#lines.replaceChildren(this.#links.show(launched, i));
  }
}

export function startKernels(): void {
  new Kernels();
}
