/** The editor: programs in JavaScript and Python, run in a worker, with their output and a curve. */

import { DeviceChoice } from "./devices";
import { button, element, html, nextTask } from "./dom";
import {
  draftOf,
  dropDraft,
  keepDraft,
  keepLastProgram,
  lastProgram,
  sharedDrafts,
  type Origin,
} from "./drafts";
import { messageOf } from "./failures";
import type { Failure, RunnerEvent } from "./messages";
import { Output } from "./output";
import { ProgramRunner } from "./program_runner";
import {
  dataOf,
  fetchExample,
  fillChoice,
  FIRST_PROGRAM,
  isExample,
  languageOf,
  supportOf,
  titleOf,
} from "./programs";
import { fragmentOf, programIn, type SharedProgram } from "./sharing";
import { SourceView } from "./source_view";

/** The name of a shared program: equal programs have one name (FNV-1a). */
function nameOf({ example, text }: SharedProgram): string {
  let hash = 0x811c9dc5;
  for (const character of `${example}\n${text}`) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return `shared-${hash.toString(16).padStart(8, "0")}.${languageOf(example) === "python" ? "py" : "js"}`;
}

/** The choice of a program: examples, and programs that came by a link. */
class ProgramChoice {
  readonly #select = element("program", HTMLSelectElement);
  readonly #origins = new Map<string, Origin>();
  readonly #shared = document.createElement("optgroup");

  /** `changed` is told of the visitor's choices. */
  constructor(changed: () => void) {
    fillChoice(this.#select);
    this.#shared.label = "From a link";
    for (const [file, origin] of sharedDrafts()) this.add(file, origin);
    this.#select.addEventListener("change", changed);
  }

  get file(): string {
    return this.#select.value;
  }

  /** Choose without calling `changed`; false for a file that is not there. */
  choose(file: string): boolean {
    const before = this.#select.value;
    this.#select.value = file;
    if (this.#select.value === file) return true;
    this.#select.value = before;
    return false;
  }

  /** Add a program that came by a link. */
  add(file: string, origin: Origin): void {
    if (!this.#origins.has(file))
      this.#shared.append(new Option(`${titleOf(origin.example)} (${file})`, file));
    this.#origins.set(file, origin);
    this.#select.append(this.#shared);
  }

  /** Where a program came from; undefined for an example. */
  originOf(file: string): Origin | undefined {
    return this.#origins.get(file);
  }
}

/** The program that is open. */
interface OpenProgram {
  readonly file: string;
  /** The example that it was made of. */
  readonly example: string;
  /** Its text before it was edited. */
  readonly original: string;
}

/** The panel: a choice of programs, their text, buttons, and the output. */
class Editor {
  readonly #choice = new ProgramChoice(() => void this.#open());
  readonly #device = new DeviceChoice(element("device", HTMLSelectElement), () => {
    this.#restart();
  });
  readonly #runButton = button("run");
  readonly #stopButton = button("stop");
  readonly #revertButton = button("revert");
  readonly #note = html("editor-note");
  readonly #output = new Output();
  readonly #source = new SourceView(html("source"), "program", {
    run: () => {
      this.#run();
    },
    edited: (text) => {
      this.#keep(text);
    },
  });
  readonly #runner = new ProgramRunner(this.#device.device, (event) => {
    this.#receive(event);
  });
  #program: OpenProgram | undefined;
  /** The file of the program that runs, which may be another one than the open program. */
  #running: string | undefined;

  constructor() {
    this.#runButton.addEventListener("click", () => {
      this.#run();
    });
    this.#stopButton.addEventListener("click", () => {
      this.#restart();
    });
    this.#revertButton.addEventListener("click", () => {
      this.#revert();
    });
    button("share").addEventListener("click", () => void this.#share());
    addEventListener("hashchange", () => void this.#openLink());
    this.#setRunning(undefined);
    void this.#start();
  }

  /** Open the program of the page's address, or that of the last visit. */
  async #start(): Promise<void> {
    if (await this.#openLink()) return;
    if (!this.#choice.choose(lastProgram() ?? FIRST_PROGRAM)) this.#choice.choose(FIRST_PROGRAM);
    await this.#open();
  }

  #setRunning(file: string | undefined): void {
    const isRunning = file !== undefined;
    this.#running = file;
    this.#runButton.disabled = isRunning;
    this.#stopButton.disabled = !isRunning;
    this.#output.setBusy(isRunning);
  }

  /** Open the program in the page's address. It is shown, not run. Whether there is one. */
  async #openLink(): Promise<boolean> {
    try {
      const shared = await programIn(location.hash);
      if (shared === undefined) return false;
      const file = nameOf(shared);
      this.#choice.add(file, { original: shared.text, example: shared.example });
      this.#choice.choose(file);
      await this.#open();
      if (this.#program?.file === file && draftOf(file) === undefined)
        this.#note.textContent = "This program came by a link. Read it before you run it.";
      return true;
    } catch (error) {
      this.#showFailure({ name: "The link did not open", message: messageOf(error) });
      return false;
    }
  }

  /** Open the program that is chosen, as it was left. */
  async #open(): Promise<void> {
    const { file } = this.#choice;
    try {
      const origin = this.#choice.originOf(file);
      const original = origin?.original ?? (await fetchExample(file));
      const support = await supportOf(languageOf(file));
      await nextTask();
      if (this.#choice.file !== file) return; // another was chosen meanwhile
      const text = draftOf(file)?.text ?? original;
      this.#program = { file, example: origin?.example ?? file, original };
      this.#source.open(file, text, support);
      this.#showEdited(text !== original);
      keepLastProgram(file);
    } catch (error) {
      this.#showFailure({ name: "The example did not load", message: messageOf(error) });
    }
  }

  #showEdited(isEdited: boolean): void {
    this.#revertButton.disabled = !isEdited;
    this.#note.textContent = isEdited ? "Edited. This browser keeps your version." : "";
  }

  /** Keep the text that the visitor has typed. */
  #keep(text: string): void {
    const program = this.#program;
    if (program === undefined) return;
    const { file, original } = program;
    // The address no longer says what is here. Safari throws after 100 changes of the address in 30 seconds.
    if (location.hash !== "#editor") history.replaceState(null, "", "#editor");
    this.#showEdited(text !== original);
    const origin = this.#choice.originOf(file);
    try {
      if (text === original) dropDraft(file);
      else keepDraft(file, { text, ...(origin && { origin }) });
    } catch (error) {
      this.#note.textContent = `Edited. This browser does not keep it: ${messageOf(error)}`;
    }
  }

  /** Back to the example, or to the program as the link had it. Undo brings the edits back. */
  #revert(): void {
    if (this.#program) this.#source.replace(this.#program.original);
    this.#note.textContent = "Back to the original. Undo (Ctrl Z) brings your edits back.";
  }

  /** Make a link of the program: in the page's address, and copied. */
  async #share(): Promise<void> {
    if (this.#program === undefined) return;
    const { example } = this.#program;
    history.replaceState(null, "", await fragmentOf({ example, text: this.#source.text }));
    try {
      await navigator.clipboard.writeText(location.href);
      this.#note.textContent = "Link copied. The program is in the link alone; no server has it.";
    } catch {
      this.#note.textContent = "The link is in the address bar. The browser did not allow to copy it.";
    }
  }

  /** Start a fresh worker on the chosen device. A program that runs is stopped. */
  #restart(): void {
    if (this.#running !== undefined) this.#output.print("stopped\n", "note");
    this.#setRunning(undefined);
    this.#runner.restart(this.#device.device);
  }

  #run(): void {
    const program = this.#program;
    if (this.#running !== undefined || program?.file !== this.#choice.file) return; // the chosen program has not arrived yet
    const { file, example } = program;
    this.#output.clear();
    this.#setRunning(file);
    const data = isExample(example) ? dataOf(example) : [];
    this.#runner.send({ kind: "run", language: languageOf(file), source: this.#source.text, file, data });
  }

  #showFailure(failure: Failure): void {
    const isOpen = this.#source.file === this.#running;
    if (failure.line !== undefined && isOpen) this.#source.goToLine(failure.line);
    this.#output.showFailure(failure);
  }

  #receive(event: RunnerEvent): void {
    switch (event.kind) {
      case "unusable":
        this.#showFailure({ name: "polygrad did not start", message: event.message });
        this.#setRunning(undefined);
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
        this.#setRunning(undefined);
        break;
      case "answer":
      case "refused":
        throw new Error("internal: an answer about kernels came to the editor");
    }
  }
}

export function startEditor(): void {
  new Editor();
}
