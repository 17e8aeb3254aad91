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

/** The programs to choose from: files of `programs/`, and what each is called. `EXAMPLES` are those of `examples/`. */
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

/** More text than this slows a page down: the oldest goes. */
const MOST_OUTPUT = 200_000;

const languageOf = (file: string): Language => (file.endsWith(".py") ? "python" : "javascript");

/** What the editor knows of a language: fetched when a program in it is first opened. */
async function supportOf(language: Language): Promise<Extension> {
  if (language === "python") {
    const { python } = await import("@codemirror/lang-python");
    return [python(), indentUnit.of("    ")];
  }
  const { javascript } = await import("@codemirror/lang-javascript");
  return [javascript(), indentUnit.of("  ")];
}

/** The worker, and what it is doing. */
class Runner {
  readonly #hear: (event: RunnerEvent) => void;
  #worker: Worker;

  constructor(hear: (event: RunnerEvent) => void) {
    this.#hear = hear;
    this.#worker = this.#start();
  }

  #start(): Worker {
    const worker = new Worker(new URL("runner.mjs", document.baseURI), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<RunnerEvent>) => {
      this.#hear(event.data);
    });
    worker.addEventListener("error", (event) => {
      this.#hear({ kind: "unusable", message: event.message || "runner.mjs could not be loaded" });
    });
    return worker;
  }

  run(request: RunRequest): void {
    this.#worker.postMessage(request);
  }

  /** End what runs; a fresh worker takes its place. */
  restart(): void {
    this.#worker.terminate();
    this.#worker = this.#start();
  }
}

export function startEditor(): void {
  const [run, stop] = [button("run"), button("stop")];
  const choice = element("program", HTMLSelectElement);
  const [output, figure, pictures] = [html("output"), html("curve-figure"), html("pictures")];
  const chart = new Chart(html("curve"), [{ label: "plot", color: "--accent-solid", scale: "value" }]);
  const language = new Compartment();
  const host = html("source");
  let running = false;

  const show = (text: string, className = ""): void => {
    const bottom = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    output.append(make("span", className, text));
    while (output.textContent.length > MOST_OUTPUT) output.firstChild?.remove();
    if (bottom) output.scrollTop = output.scrollHeight;
  };

  const setRunning = (now: boolean): void => {
    running = now;
    run.disabled = now;
    stop.disabled = !now;
    output.setAttribute("aria-busy", String(now));
  };

  const showFailure = ({ name, message, line, trace }: Failure): void => {
    const where = line === undefined ? "" : ` (line ${line})`;
    const box = make("div", "failure", make("strong", "", `${name}${where}`), make("p", "", message));
    if (trace) box.append(make("details", "", make("summary", "", "traceback"), make("pre", "", trace)));
    output.append(box);
    if (line !== undefined && line >= 1 && line <= view.state.doc.lines) {
      const { from } = view.state.doc.line(line);
      view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    }
    box.scrollIntoView({ block: "nearest" });
  };

  /** A picture that the program left in its folder. */
  const showPicture = (name: string, svg: string): void => {
    const { documentElement } = new DOMParser().parseFromString(svg, "image/svg+xml");
    if (documentElement.localName !== "svg") return; // no picture at all
    documentElement.setAttribute("role", "img");
    documentElement.setAttribute("aria-label", name);
    const caption = make("figcaption", "", make("code", "", name));
    pictures.append(make("figure", "card picture", caption, document.importNode(documentElement, true)));
  };

  const runner = new Runner((event) => {
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
        showFailure({ name: "polygrad did not start", message: event.message });
        setRunning(false);
        break;
      case "output":
        show(event.text, event.error ? "error" : "");
        break;
      case "point":
        figure.hidden = false;
        chart.add(chart.length, event.value);
        break;
      case "picture":
        showPicture(event.name, event.svg);
        break;
      case "done":
        if (event.failure) showFailure(event.failure);
        else show(`finished in ${event.seconds.toFixed(2)} s\n`, "note");
        setRunning(false);
    }
  });

  const start = (): boolean => {
    if (running || host.dataset.program !== choice.value) return true; // another program is on its way
    output.replaceChildren();
    chart.clear();
    figure.hidden = true;
    pictures.replaceChildren();
    setRunning(true);
    const file = choice.value;
    const data = EXAMPLES[file]?.data ?? [];
    runner.run({ language: languageOf(file), source: view.state.doc.toString(), file, data });
    return true;
  };

  const view = new EditorView({
    parent: host,
    state: EditorState.create({
      extensions: [
        lineNumbers(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        syntaxHighlighting(classHighlighter),
        language.of([]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "program" }),
        keymap.of([
          { key: "Mod-Enter", run: start },
          ...defaultKeymap.filter(({ key }) => key !== "Mod-Enter"),
          ...historyKeymap,
          indentWithTab,
        ]),
      ],
    }),
  });

  const open = async (): Promise<void> => {
    const file = choice.value;
    try {
      const response = await fetch(`programs/${file}`);
      if (!response.ok) throw new Error(`expected programs/${file}, got status ${response.status}`);
      const source = await response.text();
      const support = await supportOf(languageOf(file));
      await nextTask();
      if (choice.value !== file) return; // another has been chosen meanwhile
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: source },
        effects: language.reconfigure(support),
        selection: { anchor: 0 },
      });
      host.dataset.program = file;
    } catch (error) {
      showFailure({ name: "The example did not load", message: messageOf(error) });
    }
  };

  for (const kind of ["javascript", "python"] as const) {
    const group = document.createElement("optgroup");
    group.label = kind === "python" ? "Python" : "JavaScript";
    for (const [file, title] of Object.entries(PROGRAMS)) {
      if (languageOf(file) === kind) group.append(new Option(`${title} (${file})`, file));
    }
    choice.append(group);
  }
  const whole = document.createElement("optgroup");
  whole.label = "Whole programs, in Python";
  for (const [file, { title }] of Object.entries(EXAMPLES)) {
    whole.append(new Option(`${title} (${file})`, file));
  }
  choice.append(whole);
  choice.value = "xor.js";
  choice.addEventListener("change", () => void open());
  run.addEventListener("click", start);
  stop.addEventListener("click", () => {
    runner.restart();
    show("stopped\n", "note");
    setRunning(false);
  });
  setRunning(false);
  void open();
}
