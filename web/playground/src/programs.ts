/** The programs to choose from, and how the editor reads a language. */

import { indentUnit } from "@codemirror/language";
import type { Extension } from "@codemirror/state";

import { apiOf } from "./api_scopes";
import type { Language } from "./messages";

/** Files of `programs/` and their titles. */
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

/** Files of `examples/`, and what they read. */
const EXAMPLES: Readonly<Record<string, { readonly title: string; readonly data: readonly string[] }>> = {
  "convolutional.py": { title: "A convolutional classifier", data: ["data/digits.safetensors"] },
  "characters.py": { title: "A transformer writes sonnets", data: ["data/sonnets.txt"] },
  "autoencoder.py": { title: "An autoencoder", data: ["data/digits.safetensors"] },
  "uncertainty.py": { title: "Regression with uncertainty", data: [] },
};

/** The program that a first visit sees. */
export const FIRST_PROGRAM = "xor.js";

export const languageOf = (file: string): Language => (file.endsWith(".py") ? "python" : "javascript");

/** Whether there is an example with this file. */
export const isExample = (file: string): boolean =>
  Object.hasOwn(PROGRAMS, file) || Object.hasOwn(EXAMPLES, file);

/** The title of an example; any other name, as a link may have it, is its own title. */
export const titleOf = (example: string): string =>
  isExample(example) ? (PROGRAMS[example] ?? EXAMPLES[example]?.title ?? example) : example;

/** The files that an example reads. */
export const dataOf = (example: string): readonly string[] => EXAMPLES[example]?.data ?? [];

/** The text of an example. */
export async function fetchExample(file: string): Promise<string> {
  const response = await fetch(`programs/${file}`);
  if (!response.ok) throw new Error(`expected programs/${file}, got status ${response.status}`);
  return response.text();
}

/** The syntax of a language. */
async function syntaxOf(language: Language): Promise<Extension> {
  if (language === "python") {
    const { python } = await import("@codemirror/lang-python");
    return [python(), indentUnit.of("    ")];
  }
  const { javascript } = await import("@codemirror/lang-javascript");
  return [javascript(), indentUnit.of("  ")];
}

/** The editor's support of a language. It is fetched when the first program in that language is opened. */
export async function supportOf(language: Language): Promise<Extension> {
  const [syntax, api, { apiHelp }] = await Promise.all([
    syntaxOf(language),
    apiOf(language),
    import("./api_help"),
  ]);
  return [syntax, apiHelp(api)];
}

function groupOf(label: string, files: readonly string[]): HTMLOptGroupElement {
  const group = document.createElement("optgroup");
  group.label = label;
  for (const file of files) group.append(new Option(`${titleOf(file)} (${file})`, file));
  return group;
}

/** Fill the choice with the examples. */
export function fillChoice(choice: HTMLSelectElement): void {
  const inLanguage = (language: Language): string[] =>
    Object.keys(PROGRAMS).filter((file) => languageOf(file) === language);
  choice.append(
    groupOf("JavaScript", inLanguage("javascript")),
    groupOf("Python", inLanguage("python")),
    groupOf("Whole programs, in Python", Object.keys(EXAMPLES)),
  );
}
