/** The text of the program, in CodeMirror. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  type KeyBinding,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

import { html } from "./dom";

export interface SourceEvents {
  /** Ctrl-Enter. */
  readonly run: () => void;
  /** The visitor has changed the text. */
  readonly edited: (text: string) => void;
}

function extensionsFor({ run, edited }: SourceEvents): Extension {
  const runKey: KeyBinding = {
    key: "Mod-Enter",
    run: () => {
      run();
      return true;
    },
  };
  const otherKeys = defaultKeymap.filter(({ key }) => key !== runKey.key);
  return [
    lineNumbers(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    syntaxHighlighting(classHighlighter),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": "program" }),
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (docChanged) edited(state.doc.toString());
    }),
    keymap.of([runKey, ...otherKeys, ...historyKeymap, indentWithTab]),
  ];
}

export class SourceView {
  readonly #host = html("source");
  #view: EditorView;
  readonly #extensions: Extension;

  constructor(events: SourceEvents) {
    this.#extensions = extensionsFor(events);
    this.#view = this.#viewOf("", []);
  }

  #viewOf(text: string, support: Extension): EditorView {
    const state = EditorState.create({ doc: text, extensions: [this.#extensions, support] });
    return new EditorView({ parent: this.#host, state });
  }

  /** The file that the text was read from. */
  get file(): string | undefined {
    return this.#host.dataset.program;
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /**
   * Show another file. Its history begins here. The view is a new one: with `setState`, open tooltips would still be
   * measured once, at their places in the text before.
   */
  open(file: string, text: string, support: Extension): void {
    const hadFocus = this.#view.hasFocus;
    this.#view.destroy();
    this.#view = this.#viewOf(text, support);
    if (hadFocus) this.#view.focus();
    this.#host.dataset.program = file;
  }

  /** Replace the text by another, as an edit that can be undone. */
  replace(text: string): void {
    this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
  }

  /** Put the cursor on a line, if the text has it. */
  goToLine(line: number): void {
    const { doc } = this.#view.state;
    if (line < 1 || line > doc.lines) return;
    this.#view.dispatch({ selection: { anchor: doc.line(line).from }, scrollIntoView: true });
  }
}
