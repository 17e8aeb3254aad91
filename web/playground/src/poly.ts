/** Poly, the small model that `scripts/chat_model.py` has trained. */

/** The files of the model in the folder that is served. */
const NAMES = [
  "config.json",
  "generation_config.json",
  "model.safetensors",
  "tokenizer.json",
  "tokenizer_config.json",
];

/** Where the files of the model are, by name. */
export const POLY: Readonly<Record<string, URL>> = Object.fromEntries(
  NAMES.map((name) => [name, new URL(`programs/data/chat/${name}`, document.baseURI)]),
);

/** How many questions of a conversation the model has learned to see at once. */
export const POLY_TURNS = 3;
