/**
 * `pipeline`: models by the task that they are used for. Python does the model's work (polygrad/pipelines); this side opens
 * the files, and has a function of the right type for each task.
 */

import { wrap } from "./calls";
import { isOptions, type Options } from "./encode";
import {
  ANSWER_OPTIONS,
  joinAnswers,
  streamAnswer,
  writeAnswers,
  type Completion,
  type GenerationOptions,
  type Prompt,
} from "./generation";
import { ArgumentError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { number } from "./handle";
import { tensorOf } from "./make";
import { readModel, type ModelSource } from "./model_files";
import { PythonObject } from "./object";
import { checkOptions, pythonOptions, type OptionNames } from "./options";
import { pictureOf, type ImageInput } from "./pictures";
import type {
  CallOptions,
  FeatureExtractionOptions,
  OptionsOf,
  Pipelines,
  SpeechRecognitionPipeline,
  Task,
  TextInput,
  Transcription,
  TranscriptionOptions,
  ZeroShotOptions,
} from "./pipeline_types";
import type { Session } from "./session";
import { samplesOf, type SoundInput } from "./sounds";
import type { Host } from "./sources";

/** The names of options of loading. */
const LOADING: OptionNames<FeatureExtractionOptions> = {
  device: true,
  dtype: true,
  quantize: true,
  maxBatch: true,
  maxSeqLen: true,
  pooling: true,
  normalize: true,
  file: true,
  cache: true,
  maxBytes: true,
  timeout: true,
  onProgress: true,
  signal: true,
};

const GENERATION: OptionNames<GenerationOptions & { n?: number }> = {
  ...ANSWER_OPTIONS,
  stop: true,
  tools: true,
  n: true,
};

const TRANSCRIPTION: OptionNames<TranscriptionOptions> = { ...ANSWER_OPTIONS, language: true, task: true };

const SAMPLE_RATE = 16_000;

/** One input, or several. */
type Inputs<T> = T | readonly T[];

/** A model in a session, and how its functions are called. */
class Model {
  readonly session: Session;
  readonly host: Host;
  readonly object: PythonObject;

  constructor(session: Session, host: Host, objectNumber: number) {
    this.session = session;
    this.host = host;
    this.object = new PythonObject(session, objectNumber);
  }

  /** The plain data that a method returns. */
  async value(method: string, args: readonly unknown[], signal: AbortSignal | undefined): Promise<unknown> {
    signal?.throwIfAborted();
    const value = await this.session.valueWaiting("$pipelines.call", [this.object, method, ...args]);
    signal?.throwIfAborted();
    return value;
  }

  /** The rows that a method returns for texts; the row where there is one text alone. */
  async ofTexts(
    method: string,
    input: Inputs<TextInput>,
    more: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const [texts, isOne] = listOf(input, isText);
    const rows = await this.value(method, [texts, ...more], signal);
    return isOne ? (rows as unknown[])[0] : rows;
  }

  /** The rows that a method returns for pictures; the row where there is one picture alone. */
  async ofPictures(
    method: string,
    input: Inputs<ImageInput>,
    more: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const [images, isOne] = listOf(input, isNoArray);
    const temporary: Tensor[] = [];
    try {
      const pictures: Tensor[] = [];
      for (const image of images) {
        const { tensor, isOwn } = await pictureOf(this.session, this.host, image);
        if (isOwn) temporary.push(tensor);
        pictures.push(tensor);
      }
      const rows = await this.value(method, [pictures, ...more], signal);
      return isOne ? (rows as unknown[])[0] : rows;
    } finally {
      for (const tensor of temporary) tensor.dispose();
    }
  }

  /** The number of the object that a method returns. */
  call(method: string, args: readonly unknown[]): Promise<number> {
    return this.session.callWaiting("$pipelines.call", [this.object, method, ...args]);
  }
}

/** Makes the function of a task, with its model. */
type MakeFunction = (model: Model) => (...args: never[]) => unknown;

/** What makes the function of each task. */
const FUNCTIONS: Readonly<Record<Task, MakeFunction>> = {
  "text-generation": textGeneration,
  "feature-extraction": featureExtraction,
  "text-classification": texts("classify", { topK: null }),
  "fill-mask": texts("fill", { topK: 5 }),
  "image-classification": pictures("classify", { topK: null }),
  "zero-shot-image-classification": zeroShotImageClassification,
  "automatic-speech-recognition": speechRecognition,
  "object-detection": pictures("detect", { threshold: 0.5 }),
};

/** `Polygrad.pipeline`. */
export async function makePipeline<T extends Task>(
  session: Session,
  host: Host,
  task: T,
  source: ModelSource,
  options: OptionsOf<T> | undefined,
): Promise<Pipelines[T]> {
  if (!Object.hasOwn(FUNCTIONS, task)) {
    const tasks = Object.keys(FUNCTIONS).join(", ");
    throw new ArgumentError(`pipeline: expected a task of ${tasks}, got ${JSON.stringify(task)}`);
  }
  const python = pythonOptions("pipeline", options ?? {}, LOADING, [
    ...["file", "cache", "maxBytes", "timeout", "onProgress", "signal"],
  ]);
  const { file, cache, maxBytes, timeout, onProgress, signal } = options ?? {};
  signal?.throwIfAborted();
  await prepare(session, python.device);
  const read = { file, cache, maxBytes, timeout, onProgress, signal, python };
  const model = new Model(session, host, await readModel(session, host, task, source, read));
  const question = { kind: "meta", handle: model.object[number], names: ["about"] } as const;
  const { about } = (await session.ask(question)) as { about: Readonly<Record<string, unknown>> };
  const { mask_token: maskToken, ...known } = about;
  const call = FUNCTIONS[task](model);
  const properties = {
    task,
    ...known,
    ...(maskToken !== undefined && { maskToken }),
    dispose: () => {
      model.object.dispose();
    },
  };
  return Object.assign(call, properties) as unknown as Pipelines[T];
}

/** Load the libraries of tokenizers, and open the device, which takes time in a page. */
async function prepare(session: Session, device: unknown): Promise<void> {
  const open = device === undefined ? "" : `from polygrad import Device; Device[${JSON.stringify(device)}]\n`;
  const code = `from polygrad.pipelines.binding import prepare\nawait prepare()\n${open}None`;
  await session.ask({ kind: "python", code });
}

/** The inputs as a list, and whether there was one alone. Throws ArgumentError for an empty list. */
function listOf<T>(input: Inputs<T>, isOne: (input: unknown) => boolean): [T[], boolean] {
  if (Array.isArray(input) && input.length === 0) {
    throw new ArgumentError("pipeline: expected an input, or several, got an empty array");
  }
  return isOne(input) ? [[input as T], true] : [[...(input as readonly T[])], false];
}

/** Whether an input is one text, not a list of them. */
function isText(input: unknown): boolean {
  return typeof input === "string" || !Array.isArray(input) || typeof input[0] === "number";
}

/** Whether an input is one prompt, not a list of them. */
function isPrompt(input: unknown): boolean {
  return isText(input) || isOptions((input as readonly unknown[])[0]);
}

const isNoArray = (input: unknown): boolean => !Array.isArray(input);

/** The values of the options that `defaults` has, in its order. Throws ArgumentError for others. */
function valuesOf(options: CallOptions, defaults: Options): unknown[] {
  checkOptions("pipeline", options, { ...defaults, signal: true });
  return Object.entries(defaults).map(([name, value]) => (options as Options)[name] ?? value);
}

/** Of tasks that ask a method about texts. `defaults`: of the options, in the method's order. */
function texts(method: string, defaults: Options): MakeFunction {
  return (model) =>
    async (input: Inputs<TextInput>, options: CallOptions = {}) =>
      model.ofTexts(method, input, valuesOf(options, defaults), options.signal);
}

/** Of tasks that ask a method about pictures. `defaults`: of the options, in the method's order. */
function pictures(method: string, defaults: Options): MakeFunction {
  return (model) =>
    async (input: Inputs<ImageInput>, options: CallOptions = {}) =>
      model.ofPictures(method, input, valuesOf(options, defaults), options.signal);
}

function zeroShotImageClassification(model: Model): ReturnType<MakeFunction> {
  return async (input: Inputs<ImageInput>, labels: readonly string[], options: ZeroShotOptions = {}) => {
    const more = valuesOf(options, { hypothesisTemplate: "This is a photo of {}." });
    return model.ofPictures("classify", input, [labels, ...more], options.signal);
  };
}

function textGeneration(model: Model): ReturnType<MakeFunction> {
  const { session } = model;
  const start = (prompts: readonly Prompt[], options: GenerationOptions): ReturnType<typeof writeAnswers> => {
    const given = pythonOptions("generate", options, GENERATION, ["signal"]);
    return writeAnswers(session, () => model.call("start", [prompts, given]), options.signal);
  };
  const generate = async (
    prompt: Inputs<Prompt>,
    options: GenerationOptions & { n?: number } = {},
  ): Promise<unknown> => {
    const [prompts, isOne] = listOf<Prompt>(prompt, isPrompt);
    if (options.n !== undefined && !isOne) {
      throw new ArgumentError(`n: expected one prompt with it, got ${prompts.length}`);
    }
    const answers = await joinAnswers(start(prompts, options));
    return isOne && options.n === undefined ? answers[0] : answers;
  };
  const stream = (prompt: Prompt, options: GenerationOptions = {}): ReturnType<typeof streamAnswer> => {
    if (!isPrompt(prompt)) throw new ArgumentError("stream: expected one prompt, got several");
    return streamAnswer(start([prompt], options));
  };
  return Object.assign(generate, { stream });
}

function featureExtraction(model: Model): ReturnType<MakeFunction> {
  return async (input: Inputs<TextInput>, options: CallOptions = {}): Promise<Tensor> => {
    valuesOf(options, {});
    const { signal } = options;
    const [texts, isOne] = listOf(input, isText);
    signal?.throwIfAborted();
    const vectors = wrap(model.session, await model.call("embed", [texts]));
    try {
      signal?.throwIfAborted();
      const result = isOne ? vectors.at(0) : vectors.at("...");
      return await result.ready();
    } finally {
      vectors.dispose();
    }
  };
}

function speechRecognition(model: Model): ReturnType<MakeFunction> {
  const { session } = model;
  const read = async (
    samples: Float32Array<ArrayBuffer>,
    given: Options,
    signal: AbortSignal | undefined,
  ): Promise<Completion[]> => {
    const sound = tensorOf(session, samples);
    try {
      const start = (): Promise<number> => model.call("start", [sound, given]);
      return await joinAnswers(writeAnswers(session, start, signal));
    } finally {
      sound.dispose();
    }
  };
  return async function call(
    input: Inputs<SoundInput>,
    options: TranscriptionOptions = {},
  ): Promise<Transcription | undefined | Transcription[]> {
    const [sounds, isOne] = listOf<SoundInput>(input, isNoArray);
    const given = pythonOptions("transcribe", options, TRANSCRIPTION, ["signal"]);
    const { signal } = options;
    const { seconds } = call as unknown as SpeechRecognitionPipeline;
    const results: Transcription[] = [];
    for (const sound of sounds) {
      const samples = await samplesOf(model.host, sound, SAMPLE_RATE, signal);
      const parts: Completion[] = [];
      for (let at = 0; at === 0 || at < samples.length; at += seconds * SAMPLE_RATE) {
        parts.push(...(await read(samples.slice(at, at + seconds * SAMPLE_RATE), given, signal)));
      }
      const text = parts.map((part) => part.text).join("");
      results.push({ text, tokens: parts.flatMap(({ tokens }) => tokens) });
    }
    return isOne ? results[0] : results;
  };
}
