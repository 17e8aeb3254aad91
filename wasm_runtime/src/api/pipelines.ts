/**
 * `pipeline`: models by the task that they are used for. Python does the model's work (polygrad/pipelines); this side opens
 * the files, and has a function of the right type for each task.
 */

import { wrap } from "./calls";
import { isOptions } from "./encode";
import {
  joinAnswers,
  pythonOptions,
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
import { pictureOf, type ImageInput } from "./pictures";
import type {
  CallOptions,
  DetectedObject,
  DetectionOptions,
  FeatureExtractionOptions,
  FillMaskOptions,
  LabelScore,
  MaskFilling,
  OptionsOf,
  PipelineOptions,
  Pipelines,
  RankOptions,
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

/** Python's names of options of loading. */
const NAMES: Readonly<
  Record<Exclude<keyof FeatureExtractionOptions, "file" | "onProgress" | "signal">, string>
> = {
  device: "device",
  dtype: "dtype",
  quantize: "quantize",
  maxBatch: "max_batch",
  maxSeqLen: "max_seq_len",
  pooling: "pooling",
  normalize: "normalize",
};
const OWN_NAMES = ["file", "onProgress", "signal"];

const SAMPLE_RATE = 16_000;

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

  /** The number of the object that a method returns. */
  call(method: string, args: readonly unknown[]): Promise<number> {
    return this.session.callWaiting("$pipelines.call", [this.object, method, ...args]);
  }

  /** `use` of pictures as tensors, which are freed afterwards. */
  async withPictures<T>(images: readonly ImageInput[], use: (pictures: Tensor[]) => Promise<T>): Promise<T> {
    const temporary: Tensor[] = [];
    try {
      const pictures: Tensor[] = [];
      for (const image of images) {
        const { tensor, isOwn } = await pictureOf(this.session, this.host, image);
        if (isOwn) temporary.push(tensor);
        pictures.push(tensor);
      }
      return await use(pictures);
    } finally {
      for (const tensor of temporary) tensor.dispose();
    }
  }
}

/** What makes the function of each task. */
const FUNCTIONS: Readonly<Record<Task, (model: Model) => (...args: never[]) => unknown>> = {
  "text-generation": textGeneration,
  "feature-extraction": featureExtraction,
  "text-classification": textClassification,
  "fill-mask": fillMask,
  "image-classification": imageClassification,
  "zero-shot-image-classification": zeroShotImageClassification,
  "automatic-speech-recognition": speechRecognition,
  "object-detection": objectDetection,
};

/** `Polygrad.pipeline`. */
export async function makePipeline<T extends Task>(
  session: Session,
  host: Host,
  task: T,
  source: ModelSource,
  options: OptionsOf<T> | undefined,
): Promise<Pipelines[T]> {
  const { file, onProgress, signal, python } = loadOptions(task, options ?? {});
  signal?.throwIfAborted();
  await prepare(session, python.device);
  const read = { file, onProgress, signal, python };
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

/** Options, those for Python under its names. Throws ArgumentError for what TypeScript refuses. */
function loadOptions(
  task: Task,
  options: FeatureExtractionOptions,
): PipelineOptions & { python: Readonly<Record<string, unknown>> } {
  if (!Object.hasOwn(FUNCTIONS, task)) {
    const tasks = Object.keys(FUNCTIONS).join(", ");
    throw new ArgumentError(`pipeline: expected a task of ${tasks}, got ${JSON.stringify(task)}`);
  }
  if (!isOptions(options)) throw new ArgumentError("pipeline: expected options as an object");
  const names: Readonly<Record<string, string>> = NAMES;
  const python: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (OWN_NAMES.includes(name) || value === undefined) continue;
    const other = Object.hasOwn(names, name) ? names[name] : undefined;
    if (other === undefined) {
      const expected = [...Object.keys(NAMES), ...OWN_NAMES].join(", ");
      throw new ArgumentError(`pipeline: expected options among ${expected}, got ${name}`);
    }
    python[other] = value;
  }
  return { ...options, python };
}

/** Load the libraries of tokenizers, and open the device, which takes time in a page. */
async function prepare(session: Session, device: unknown): Promise<void> {
  const open = device === undefined ? "" : `from polygrad import Device; Device[${JSON.stringify(device)}]\n`;
  const code = `from polygrad.pipelines.binding import prepare\nawait prepare()\n${open}None`;
  await session.ask({ kind: "python", code });
}

/** The inputs as a list, and whether there was one alone. Throws ArgumentError for an empty list. */
function listOf<T>(input: T | readonly T[], isOne: (input: unknown) => boolean): [T[], boolean] {
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

function textGeneration(model: Model): (...args: never[]) => unknown {
  const { session } = model;
  const start = (prompts: readonly Prompt[], options: GenerationOptions): ReturnType<typeof writeAnswers> => {
    const given = pythonOptions(options as Readonly<Record<string, unknown>>);
    return writeAnswers(session, () => model.call("start", [prompts, given]), options.signal);
  };
  const generate = async (
    prompt: Prompt | readonly Prompt[],
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

function featureExtraction(model: Model): (...args: never[]) => unknown {
  return async (input: TextInput | readonly TextInput[], { signal }: CallOptions = {}): Promise<Tensor> => {
    const [texts, isOne] = listOf<TextInput>(input, isText);
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

function textClassification(model: Model): (...args: never[]) => unknown {
  return async (input: TextInput | readonly TextInput[], { topK, signal }: RankOptions = {}) => {
    const [texts, isOne] = listOf<TextInput>(input, isText);
    const rows = (await model.value("classify", [texts, topK ?? null], signal)) as LabelScore[][];
    return isOne ? rows[0] : rows;
  };
}

function fillMask(model: Model): (...args: never[]) => unknown {
  return async (input: TextInput | readonly TextInput[], { topK = 5, signal }: FillMaskOptions = {}) => {
    const [texts, isOne] = listOf<TextInput>(input, isText);
    const rows = (await model.value("fill", [texts, topK], signal)) as MaskFilling[][][];
    return isOne ? rows[0] : rows;
  };
}

function imageClassification(model: Model): (...args: never[]) => unknown {
  return async (input: ImageInput | readonly ImageInput[], { topK, signal }: RankOptions = {}) => {
    const [images, isOne] = listOf<ImageInput>(input, isNoArray);
    return model.withPictures(images, async (pictures) => {
      const rows = (await model.value("classify", [pictures, topK ?? null], signal)) as LabelScore[][];
      return isOne ? rows[0] : rows;
    });
  };
}

function zeroShotImageClassification(model: Model): (...args: never[]) => unknown {
  return async (
    input: ImageInput | readonly ImageInput[],
    labels: readonly string[],
    { hypothesisTemplate = "This is a photo of {}.", signal }: ZeroShotOptions = {},
  ) => {
    const [images, isOne] = listOf<ImageInput>(input, isNoArray);
    return model.withPictures(images, async (pictures) => {
      const args = [pictures, labels, hypothesisTemplate];
      const rows = (await model.value("classify", args, signal)) as LabelScore[][];
      return isOne ? rows[0] : rows;
    });
  };
}

function objectDetection(model: Model): (...args: never[]) => unknown {
  return async (
    input: ImageInput | readonly ImageInput[],
    { threshold = 0.5, signal }: DetectionOptions = {},
  ) => {
    const [images, isOne] = listOf<ImageInput>(input, isNoArray);
    return model.withPictures(images, async (pictures) => {
      const rows = (await model.value("detect", [pictures, threshold], signal)) as DetectedObject[][];
      return isOne ? rows[0] : rows;
    });
  };
}

function speechRecognition(model: Model): (...args: never[]) => unknown {
  const { session } = model;
  const read = async (
    samples: Float32Array<ArrayBuffer>,
    options: TranscriptionOptions,
  ): Promise<Completion[]> => {
    const given = pythonOptions(options as Readonly<Record<string, unknown>>, {
      language: "language",
      task: "task",
    });
    const sound = tensorOf(session, samples);
    try {
      const start = (): Promise<number> => model.call("start", [sound, given]);
      return await joinAnswers(writeAnswers(session, start, options.signal));
    } finally {
      sound.dispose();
    }
  };
  return async function call(
    input: SoundInput | readonly SoundInput[],
    options: TranscriptionOptions = {},
  ): Promise<Transcription | undefined | Transcription[]> {
    const [sounds, isOne] = listOf<SoundInput>(input, isNoArray);
    const { seconds } = call as unknown as SpeechRecognitionPipeline;
    const results: Transcription[] = [];
    for (const sound of sounds) {
      const samples = await samplesOf(model.host, sound, SAMPLE_RATE, options.signal);
      const parts: Completion[] = [];
      for (let at = 0; at === 0 || at < samples.length; at += seconds * SAMPLE_RATE) {
        parts.push(...(await read(samples.slice(at, at + seconds * SAMPLE_RATE), options)));
      }
      const text = parts.map((part) => part.text).join("");
      results.push({ text, tokens: parts.flatMap(({ tokens }) => tokens) });
    }
    return isOne ? results[0] : results;
  };
}
