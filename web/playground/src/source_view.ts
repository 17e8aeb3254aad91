/** The text of the program, in CodeMirror. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField, type Extension } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  type DecorationSet,
  type KeyBinding,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

export interface SourceEvents {
  /** Ctrl-Enter. */
  readonly run: () => void;
  /** The visitor has changed the text. */
  readonly edited: (text: string) => void;
}

/** Marks these lines, and no others. */
const markLines = StateEffect.define<readonly number[]>();
const MARK = Decoration.line({ class: "marked-line" });

/** The lines that are marked. An edit takes the marks away. */
const markedLines = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { effects, docChanged, state: { doc } }) {
    for (const effect of effects) {
      if (!effect.is(markLines)) continue;
      const known = effect.value.filter((line) => line >= 1 && line <= doc.lines);
      return Decoration.set(
        known.map((line) => MARK.range(doc.line(line).from)),
        true,
      );
    }
    return docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function extensionsFor(label: string, { run, edited }: SourceEvents): Extension {
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
    EditorView.contentAttributes.of({ "aria-label": label }),
    markedLines,
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (docChanged) edited(state.doc.toString());
    }),
    keymap.of([runKey, ...otherKeys, ...historyKeymap, indentWithTab]),
  ];
}

export class SourceView {
  readonly #host: HTMLElement;
  #view: EditorView;
  readonly #extensions: Extension;

  /** `label`: what it is called to those who do not see it. */
  constructor(host: HTMLElement, label: string, events: SourceEvents) {
    this.#host = host;
    this.#extensions = extensionsFor(label, events);
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

  /** Mark lines, and no others; those that the text does not have are left out. */
  mark(lines: readonly number[]): void {
    this.#view.dispatch({ effects: markLines.of(lines) });
  }

  /** The text of a line; empty where there is none. */
  textOf(line: number): string {
    const { doc } = this.#view.state;
    return line < 1 || line > doc.lines ? "" : doc.line(line).text;
  }

  focus(): void {
    this.#view.focus();
  }

  /** Put the cursor on a line, if the text has it. */
  goToLine(line: number): void {
    const { doc } = this.#view.state;
    if (line < 1 || line > doc.lines) return;
    this.#view.dispatch({ selection: { anchor: doc.line(line).from }, scrollIntoView: true });
  }
}
