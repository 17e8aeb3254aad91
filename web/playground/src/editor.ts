/** The editor: programs in JavaScript and Python, run in a worker, with their output and a curve. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

import { Chart } from "./chart";
import { button, element, html, make, nextTask } from "./dom";
import { messageOf } from "./failures";
import type { Failure, Language, RunnerEvent, RunRequest } from "./messages";
import { showStatus } from "./status";

/** The programs to choose from: files of `programs/` and their titles. `EXAMPLES` are files of `examples/`. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "tensor.js": "A first tensor",
  "gradients.js": "Gradients",
  "xor.js": "Training xor",
  "step.js": "A captured step",
  "tensor.py": "A first tensor",
  "gradients.py": "Gradients",
  "xor.py": "Training xor",
  "step.py": "A captured step",
};

const EXAMPLES: Readonly<Record<string, { readonly title: string; readonly data: readonly string[] }>> = {
  "convolutional.py": { title: "A convolutional classifier", data: ["data/digits.safetensors"] },
  "characters.py": { title: "A transformer writes sonnets", data: ["data/sonnets.txt"] },
  "autoencoder.py": { title: "An autoencoder", data: ["data/digits.safetensors"] },
  "uncertainty.py": { title: "Regression with uncertainty", data: [] },
};

/** The output keeps this many characters; older ones are removed. More slow the page down. */
const MAX_OUTPUT = 200_000;

const languageOf = (file: string): Language => (file.endsWith(".py") ? "python" : "javascript");

/** The editor's support of a language. It is fetched when the first program in that language is opened. */
async function supportOf(language: Language): Promise<Extension> {
  if (language === "python") {
    const { python } = await import("@codemirror/lang-python");
    return [python(), indentUnit.of("    ")];
  }
  const { javascript } = await import("@codemirror/lang-javascript");
  return [javascript(), indentUnit.of("  ")];
}

/** The worker that runs programs. */
class Runner {
  readonly #receive: (event: RunnerEvent) => void;
  #worker: Worker;

  constructor(receive: (event: RunnerEvent) => void) {
    this.#receive = receive;
    this.#worker = this.#start();
  }

  #start(): Worker {
    const worker = new Worker(new URL("runner.mjs", document.baseURI), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<RunnerEvent>) => {
      this.#receive(event.data);
    });
    worker.addEventListener("error", (event) => {
      this.#receive({ kind: "unusable", message: event.message || "runner.mjs could not be loaded" });
    });
    return worker;
  }

  run(request: RunRequest): void {
    this.#worker.postMessage(request);
  }

  /** Stop the program that runs, and start a fresh worker. */
  restart(): void {
    this.#worker.terminate();
    this.#worker = this.#start();
  }
}

/** What a program prints, plots and draws. */
class Output {
  readonly #text = html("output");
  readonly #figure = html("curve-figure");
  readonly #pictures = html("pictures");
  readonly #chart = new Chart(html("curve"), [{ label: "plot", color: "--accent-solid", scale: "value" }]);

  clear(): void {
    this.#text.replaceChildren();
    this.#chart.clear();
    this.#figure.hidden = true;
    this.#pictures.replaceChildren();
  }

  setBusy(isBusy: boolean): void {
    this.#text.setAttribute("aria-busy", String(isBusy));
  }

  /** Append text. A reader who is at the end stays there. */
  print(text: string, className = ""): void {
    const output = this.#text;
    const isAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    output.append(make("span", className, text));
    while (output.textContent.length > MAX_OUTPUT) output.firstChild?.remove();
    if (isAtEnd) output.scrollTop = output.scrollHeight;
  }

  showFailure({ name, message, line, trace }: Failure): void {
    const where = line === undefined ? "" : ` (line ${line})`;
    const box = make("div", "failure", make("strong", "", `${name}${where}`), make("p", "", message));
    if (trace) box.append(make("details", "", make("summary", "", "traceback"), make("pre", "", trace)));
    this.#text.append(box);
    box.scrollIntoView({ block: "nearest" });
  }

  addPoint(value: number): void {
    this.#figure.hidden = false;
    this.#chart.add(this.#chart.length, value);
  }

  /** Show a picture that the program left in its folder. */
  showPicture(name: string, svg: string): void {
    const { documentElement } = new DOMParser().parseFromString(svg, "image/svg+xml");
    if (documentElement.localName !== "svg") return; // the file is damaged
    documentElement.setAttribute("role", "img");
    documentElement.setAttribute("aria-label", name);
    const caption = make("figcaption", "", make("code", "", name));
    const picture = document.importNode(documentElement, true);
    this.#pictures.append(make("figure", "card picture", caption, picture));
  }
}

/** The text of the program. */
class SourceView {
  readonly #host = html("source");
  readonly #language = new Compartment();
  readonly #view: EditorView;

  /** `run` is called for Ctrl-Enter. */
  constructor(run: () => void) {
    const runKey = {
      key: "Mod-Enter",
      run: () => {
        run();
        return true;
      },
    };
    const otherKeys = defaultKeymap.filter(({ key }) => key !== runKey.key);
    const extensions = [
      lineNumbers(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      syntaxHighlighting(classHighlighter),
      this.#language.of([]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "program" }),
      keymap.of([runKey, ...otherKeys, ...historyKeymap, indentWithTab]),
    ];
    this.#view = new EditorView({ parent: this.#host, state: EditorState.create({ extensions }) });
  }

  /** The file that the text was read from. */
  get file(): string | undefined {
    return this.#host.dataset.program;
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  open(file: string, text: string, support: Extension): void {
    this.#view.dispatch({
      changes: { from: 0, to: this.#view.state.doc.length, insert: text },
      effects: this.#language.reconfigure(support),
      selection: { anchor: 0 },
    });
    this.#host.dataset.program = file;
  }

  /** Put the cursor on a line, if the text has it. */
  goToLine(line: number): void {
    const { doc } = this.#view.state;
    if (line < 1 || line > doc.lines) return;
    this.#view.dispatch({ selection: { anchor: doc.line(line).from }, scrollIntoView: true });
  }
}

/** Add a group of programs to the choice. */
function addGroup(
  choice: HTMLSelectElement,
  label: string,
  titles: readonly [file: string, title: string][],
): void {
  const group = document.createElement("optgroup");
  group.label = label;
  for (const [file, title] of titles) group.append(new Option(`${title} (${file})`, file));
  choice.append(group);
}

/** Fill the choice of programs; `xor.js` is chosen. */
function fillChoice(choice: HTMLSelectElement): void {
  const programs = Object.entries(PROGRAMS);
  const examples = Object.entries(EXAMPLES);
  const inLanguage = (language: Language): [string, string][] =>
    programs.filter(([file]) => languageOf(file) === language);
  addGroup(choice, "JavaScript", inLanguage("javascript"));
  addGroup(choice, "Python", inLanguage("python"));
  addGroup(
    choice,
    "Whole programs, in Python",
    examples.map(([file, { title }]) => [file, title]),
  );
  choice.value = "xor.js";
}

/** The panel: a choice of programs, their text, buttons, and the output. */
class Editor {
  readonly #choice = element("program", HTMLSelectElement);
  readonly #runButton = button("run");
  readonly #stopButton = button("stop");
  readonly #output = new Output();
  readonly #source = new SourceView(() => {
    this.#run();
  });
  readonly #runner = new Runner((event) => {
    this.#receive(event);
  });
  #isRunning = false;

  constructor() {
    fillChoice(this.#choice);
    this.#choice.addEventListener("change", () => void this.#open());
    this.#runButton.addEventListener("click", () => {
      this.#run();
    });
    this.#stopButton.addEventListener("click", () => {
      this.#stop();
    });
    this.#setRunning(false);
    void this.#open();
  }

  #setRunning(isRunning: boolean): void {
    this.#isRunning = isRunning;
    this.#runButton.disabled = isRunning;
    this.#stopButton.disabled = !isRunning;
    this.#output.setBusy(isRunning);
  }

  /** Open the program that is chosen. */
  async #open(): Promise<void> {
    const file = this.#choice.value;
    try {
      const response = await fetch(`programs/${file}`);
      if (!response.ok) throw new Error(`expected programs/${file}, got status ${response.status}`);
      const text = await response.text();
      const support = await supportOf(languageOf(file));
      await nextTask();
      if (this.#choice.value === file) this.#source.open(file, text, support); // else another was chosen meanwhile
    } catch (error) {
      this.#showFailure({ name: "The example did not load", message: messageOf(error) });
    }
  }

  #run(): void {
    const file = this.#choice.value;
    if (this.#isRunning || this.#source.file !== file) return; // the chosen program has not arrived yet
    this.#output.clear();
    this.#setRunning(true);
    const data = EXAMPLES[file]?.data ?? [];
    this.#runner.run({ language: languageOf(file), source: this.#source.text, file, data });
  }

  #stop(): void {
    this.#runner.restart();
    this.#output.print("stopped\n", "note");
    this.#setRunning(false);
  }

  #showFailure(failure: Failure): void {
    if (failure.line !== undefined) this.#source.goToLine(failure.line);
    this.#output.showFailure(failure);
  }

  #receive(event: RunnerEvent): void {
    switch (event.kind) {
      case "progress":
        showStatus("busy", `starting: ${event.stage} ${Math.round(event.fraction * 100)}%`);
        break;
      case "ready":
        showStatus(
          "ready",
          `${event.device} · ${event.threads} ${event.threads === 1 ? "thread" : "threads"}`,
        );
        break;
      case "unusable":
        showStatus("failed", "not started");
        this.#showFailure({ name: "polygrad did not start", message: event.message });
        this.#setRunning(false);
        break;
      case "output":
        this.#output.print(event.text, event.error ? "error" : "");
        break;
      case "point":
        this.#output.addPoint(event.value);
        break;
      case "picture":
        this.#output.showPicture(event.name, event.svg);
        break;
      case "done":
        if (event.failure) this.#showFailure(event.failure);
        else this.#output.print(`finished in ${event.seconds.toFixed(2)} s\n`, "note");
        this.#setRunning(false);
    }
  }
}

export function startEditor(): void {
  new Editor();
}
