/** A chat with the small model that is served with the page, or with one from the visitor's disk. */

import type { ChatMessage, ModelSource, Polygrad, TextGenerationPipeline } from "polygrad";

import { lastTurns } from "./conversation";
import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import { POLY, POLY_TURNS } from "./poly";
import { session } from "./session";

/** What a visitor talks with. */
interface Talker {
  readonly name: string;
  readonly generator: TextGenerationPipeline;
  /** How many questions of a conversation it is given. */
  readonly turns: number;
}

const SUGGESTIONS = [
  "What can you do?",
  "What is 7 + 5?",
  "What colour is the sky?",
  "Tell me a story.",
  "What is polygrad?",
];

const NEAR_END = 40; // pixels from the end, where the log follows what is written

/** The messages as they are seen. */
class Log {
  readonly #host = html("messages");

  clear(...content: Node[]): void {
    this.#host.replaceChildren(...content);
  }

  /** Add a message; the element that its text goes to. */
  add(role: "user" | "assistant", text = ""): HTMLElement {
    const content = make("p", "", text);
    const speaker = make("span", "hidden-text", role === "user" ? "You: " : "The model: ");
    this.append(make("article", `message ${role}`, speaker, content));
    return content;
  }

  /** Add what is said of a message below it. */
  note(message: HTMLElement, text: string): void {
    message.after(make("footer", "muted", text));
    this.#host.scrollTop = this.#host.scrollHeight;
  }

  append(child: Node): void {
    this.#host.append(child);
    this.#host.scrollTop = this.#host.scrollHeight;
  }

  /** Add text to a message; who reads at the end stays there. */
  extend(message: HTMLElement, text: string): void {
    const { scrollHeight, scrollTop, clientHeight } = this.#host;
    message.append(text);
    if (scrollHeight - scrollTop - clientHeight < NEAR_END) this.#host.scrollTop = this.#host.scrollHeight;
  }
}

/** The panel. */
class Chat {
  readonly #log = new Log();
  readonly #note = html("chat-note");
  readonly #send = button("chat-send");
  readonly #question = element("chat-question", HTMLInputElement);
  readonly #temperature = element("chat-temperature", HTMLInputElement);
  readonly #length = element("chat-length", HTMLSelectElement);
  #messages: ChatMessage[] = [];
  #talker: Talker | undefined;
  #writing: AbortController | undefined;
  #written: Promise<void> = Promise.resolve();
  #opened = 0;

  constructor() {
    element("chat-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#writing) this.#writing.abort();
      else this.#ask(this.#question.value.trim());
    });
    button("new-chat").addEventListener("click", () => void this.#startAnew());
    button("chat-built-in").addEventListener("click", () => void this.openPoly());
    this.#temperature.addEventListener("input", () => {
      html("chat-temperature-value").textContent = Number(this.#temperature.value).toFixed(1);
    });
    this.#takeFiles("chat-folder", (files) => [files, folderOf(files)]);
    this.#takeFiles("chat-gguf", ([file]) => file && [file, file.name]);
  }

  openPoly(): Promise<void> {
    return this.#open("Poly", POLY_TURNS, (pg) => pg.pipeline("text-generation", POLY, { dtype: "float32" }));
  }

  /** Open what a file input is given. */
  #takeFiles(
    id: string,
    sourceOf: (files: readonly File[]) => readonly [source: ModelSource, name: string] | undefined,
  ): void {
    const picker = element(id, HTMLInputElement);
    picker.addEventListener("change", () => {
      const [source, name] = sourceOf(Array.from(picker.files ?? [])) ?? [];
      picker.value = ""; // the same files may be chosen again
      if (source === undefined || name === undefined) return;
      void this.#open(name, Infinity, (pg) =>
        pg.pipeline("text-generation", source, {
          onProgress: ({ fraction }) => {
            this.#note.textContent = `reading ${name}: ${Math.round(fraction * 100)}%`;
          },
        }),
      );
    });
  }

  /** Talk with another model. The one before stays where that cannot be opened. */
  async #open(
    name: string,
    turns: number,
    load: (pg: Polygrad) => Promise<TextGenerationPipeline>,
  ): Promise<void> {
    const turn = ++this.#opened;
    this.#note.textContent = `opening ${name}…`;
    this.#send.disabled = true;
    try {
      const generator = await load(await session());
      if (turn !== this.#opened) {
        generator.dispose(); // somebody has opened another one meanwhile
        return;
      }
      await this.#startAnew();
      this.#talker?.generator.dispose();
      this.#talker = { name, turns, generator };
      this.#note.textContent = `You talk with ${name}, a ${generator.architecture}.`;
    } catch (error) {
      if (turn !== this.#opened) return;
      this.#note.textContent = this.#talker ? `You still talk with ${this.#talker.name}.` : "";
      this.#log.append(make("div", "failure", messageOf(error)));
    } finally {
      if (turn === this.#opened) this.#send.disabled = this.#talker === undefined;
    }
  }

  /** End what is written, and forget the conversation. */
  async #startAnew(): Promise<void> {
    this.#writing?.abort();
    await this.#written;
    this.#messages = [];
    const suggestions = SUGGESTIONS.map((text) => {
      const suggestion = make("button", "suggestion", text);
      suggestion.addEventListener("click", () => {
        this.#ask(text);
        this.#question.focus();
      });
      return suggestion;
    });
    this.#log.clear(
      make("div", "suggestions", make("p", "muted", "Ask something, for example:"), ...suggestions),
    );
  }

  #ask(text: string): void {
    if (text === "" || this.#talker === undefined || this.#writing || this.#send.disabled) return;
    if (this.#messages.length === 0) this.#log.clear();
    this.#question.value = "";
    this.#written = this.#answer(this.#talker, text);
  }

  async #answer(talker: Talker, text: string): Promise<void> {
    const asked = [...this.#messages, { role: "user", content: text }];
    const writing = (this.#writing = new AbortController());
    this.#log.add("user", text);
    const message = this.#log.add("assistant");
    message.parentElement?.classList.add("writing");
    this.#send.textContent = "Stop";
    try {
      const note = await this.#write(talker, lastTurns(asked, talker.turns), message, writing.signal);
      if (message.textContent !== "") {
        this.#messages = [...asked, { role: "assistant", content: message.textContent }];
      }
      this.#log.note(message, note);
    } catch (error) {
      if (message.textContent === "") message.parentElement?.remove();
      this.#log.append(make("div", "failure", messageOf(error))); // the question is not part of the conversation
    } finally {
      message.parentElement?.classList.remove("writing");
      this.#writing = undefined;
      this.#send.textContent = "Send";
    }
  }

  /** Write an answer into `message`; what there is to say of it. */
  async #write(
    { generator }: Talker,
    asked: readonly ChatMessage[],
    message: HTMLElement,
    signal: AbortSignal,
  ): Promise<string> {
    const options = {
      temperature: Number(this.#temperature.value),
      maxNewTokens: Number(this.#length.value),
      signal,
    };
    const started = performance.now();
    const stream = generator.stream(asked, options);
    try {
      for (;;) {
        const { value, done } = await stream.next();
        if (done !== true) {
          this.#log.extend(message, value);
          continue;
        }
        const seconds = (performance.now() - started) / 1e3;
        const count = value.tokens.length;
        const end = value.finishReason === "length" ? ", as many as it may have" : "";
        return `${count} tokens${end} · ${(count / seconds).toFixed(0)} tokens/s`;
      }
    } catch (error) {
      if (signal.aborted) return "stopped";
      throw error;
    }
  }
}

/** The name of the folder that files were chosen with. */
function folderOf([file]: readonly File[]): string {
  return file?.webkitRelativePath.split("/")[0] ?? "";
}

export function startChat(): void {
  void new Chat().openPoly();
}
