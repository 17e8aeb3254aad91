/** Help with polygrad's API in the editor: completion while one types, and what a name means (hover, or F1). */

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { EditorState, StateEffect, StateField, type Extension } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, showTooltip, type Tooltip } from "@codemirror/view";

import type { ApiScopes, Entry, Kind } from "./api_scopes";
import { make } from "./dom";

/** What stands before a name: names joined by dots, or the end of a call, an index or a literal. */
const OWNER = /(?:([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)|([)\]}"']))\s*\.\s*$/;

/** CodeMirror's icons. */
const ICONS: Readonly<Record<Kind, string>> = {
  class: "class",
  function: "function",
  property: "property",
  namespace: "namespace",
};

/** The owner of a name that begins at `from`: "" where nothing with a dot stands before it. */
function ownerAt(state: EditorState, from: number): string {
  const before = state.sliceDoc(Math.max(0, from - 200), from);
  const [, path, end] = OWNER.exec(before) ?? [];
  return path ?? end ?? "";
}

/** A name with its signature, and what it does. */
function describe([name, kind, signature, doc]: Entry): HTMLElement {
  const head = make("code", "api-signature", make("strong", "", name), signature);
  if (kind === "class") head.prepend("class ");
  return make("div", "api-help", head, ...(doc ? [make("p", "", doc)] : []));
}

const textOf = ([name, , signature, doc]: Entry): string => `${name}${signature}. ${doc}`;

/** The result of a function, or the type of a property: it fits beside the name. */
function shortDetail(signature: string): string {
  const [result = signature] = signature.split(" → ").slice(-1);
  if (result.startsWith("(") || result.length > 28) return "";
  return signature.startsWith("(") ? `→ ${result}` : result;
}

function completionOf(entry: Entry): Completion {
  const [label, kind, signature] = entry;
  return { label, type: ICONS[kind], detail: shortDetail(signature), info: () => describe(entry) };
}

function complete(api: ApiScopes, context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/[\w$]*/);
  const from = word?.from ?? context.pos;
  const owner = ownerAt(context.state, from);
  const isTyping = owner !== "" || context.pos - from >= 2;
  if (!isTyping && !context.explicit) return null;
  const entries = api.after(owner, context.state.doc.toString());
  return entries.length === 0 ? null : { from, options: entries.map(completionOf), validFor: /^[\w$]*$/ };
}

/** The name at a place, and what it means there. */
function entryAt(
  api: ApiScopes,
  state: EditorState,
  pos: number,
): { from: number; entry: Entry } | undefined {
  const word = state.wordAt(pos);
  if (word === null) return undefined;
  const owner = ownerAt(state, word.from);
  const entry = api.find(owner, state.sliceDoc(word.from, word.to), state.doc.toString());
  return entry && { from: word.from, entry };
}

function tooltip(from: number, entry: Entry): Tooltip {
  return { pos: from, above: true, create: () => ({ dom: describe(entry) }) };
}

const setHelp = StateEffect.define<Tooltip | null>();

/** The help that F1 has opened. It closes when the cursor moves. */
const help = StateField.define<Tooltip | null>({
  create: () => null,
  update(shown, transaction) {
    for (const effect of transaction.effects) if (effect.is(setHelp)) return effect.value;
    return transaction.docChanged || transaction.selection ? null : shown;
  },
  provide: (field) => showTooltip.from(field),
});

function openHelp(api: ApiScopes, view: EditorView): boolean {
  const found = entryAt(api, view.state, view.state.selection.main.head);
  const said = found ? textOf(found.entry) : "No help for the name at the cursor.";
  view.dispatch({
    effects: [setHelp.of(found ? tooltip(found.from, found.entry) : null), EditorView.announce.of(said)],
  });
  return true;
}

function closeHelp(view: EditorView): boolean {
  if (view.state.field(help) === null) return false;
  view.dispatch({ effects: setHelp.of(null) });
  return true;
}

/** The help of `api`, as an extension of the editor. The language's own completions stay. */
export function apiHelp(api: ApiScopes): Extension {
  const source = (context: CompletionContext): CompletionResult | null => complete(api, context);
  return [
    autocompletion({ icons: true }),
    EditorState.languageData.of(() => [{ autocomplete: source }]),
    hoverTooltip((view, pos) => {
      const found = entryAt(api, view.state, pos);
      return found ? tooltip(found.from, found.entry) : null;
    }),
    help,
    keymap.of([
      { key: "F1", run: (view) => openHelp(api, view), preventDefault: true },
      { key: "Escape", run: closeHelp },
    ]),
  ];
}
