/** The types of `pipeline`: what each task is asked, and what it answers. */

import type { DTypeName } from "./dtypes";
import type { AnswerOptions, Completion, GenerationOptions, Prompt } from "./generation";
import type { Tensor } from "./generated/tensor";
import type { ModelSource } from "./model_files";
import type { ImageInput } from "./pictures";
import type { SoundInput } from "./sounds";
import type { DownloadLimits } from "../download_limits";
import type { OnProgress } from "../progress";

/** How a model is loaded. */
export interface PipelineOptions extends DownloadLimits {
  /** The device of the model; by default the default device. */
  readonly device?: string;
  /** What floats among the weights are converted to, such as "float16"; by default they stay as they are. */
  readonly dtype?: DTypeName;
  /**
   * The kind that weights are packed in while they arrive: "int8", "int4", "fp8", "q8_0", "q4_0" and others. Weights that the
   * file has packed stay as they are.
   */
  readonly quantize?: string;
  /** How many prompts are answered side by side; 1 unless given. */
  readonly maxBatch?: number;
  /** How many tokens a text may have, prompt and answer; by default as many as the model takes. */
  readonly maxSeqLen?: number;
  /** The file of weights in the model's folder, such as "model-Q4_0.gguf" or "onnx/model_fp16.onnx". */
  readonly file?: string;
  /** Whether files at addresses are kept for the next time, and read from what is kept; true unless given. */
  readonly cache?: boolean;
  /** Is called while the weights arrive. */
  readonly onProgress?: OnProgress;
  /** Stops loading: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface FeatureExtractionOptions extends PipelineOptions {
  /** How vectors of tokens become that of their text; by default as the model's files say, else the mean. */
  readonly pooling?: "mean" | "cls" | "max" | "mean_sqrt_len_tokens" | "weightedmean" | "lasttoken";
  /** Whether vectors get the length 1; by default as the model's files say. */
  readonly normalize?: boolean;
}

/** A label, and how likely it is. */
export interface LabelScore {
  readonly label: string;
  readonly score: number;
}

/** A token that may stand where a mask is. */
export interface MaskFilling {
  readonly text: string;
  readonly score: number;
  readonly token: number;
}

/** An object in a picture; `box` is in pixels. */
export interface DetectedObject extends LabelScore {
  readonly box: {
    readonly xmin: number;
    readonly ymin: number;
    readonly xmax: number;
    readonly ymax: number;
  };
}

/** What is said in a sound. */
export interface Transcription {
  readonly text: string;
  readonly tokens: readonly number[];
}

/** Text, or the ids of its tokens. */
export type TextInput = string | readonly number[];

/** Options of calls that answer at once. */
export interface CallOptions {
  /** Is looked at before and after: the promise then rejects with its reason. */
  readonly signal?: AbortSignal;
}

export interface RankOptions extends CallOptions {
  /** How many labels there are in an answer; all unless given. */
  readonly topK?: number;
}

export interface FillMaskOptions extends CallOptions {
  /** How many tokens there are for each mask; 5 unless given. */
  readonly topK?: number;
}

export interface ZeroShotOptions extends CallOptions {
  /** The text that the model compares pictures with, in which `{}` is the label: "This is a photo of {}." unless given. */
  readonly hypothesisTemplate?: string;
}

export interface DetectionOptions extends CallOptions {
  /** The score above which objects are told: 0.5 unless given. */
  readonly threshold?: number;
}

export interface TranscriptionOptions extends AnswerOptions {
  /** The language of the sound, as "en". By default as the model's files say. */
  readonly language?: string;
  /** "translate" gives English. */
  readonly task?: "transcribe" | "translate";
}

/** What pipelines of all tasks have. */
interface PipelineBase {
  readonly task: Task;
  /** The model's architecture, such as "LlamaForCausalLM". */
  readonly architecture: string;
  /** Free the model; it cannot be used afterwards. What it returned can. */
  dispose(): void;
}

/** Goes on with texts, or answers in conversations. */
export interface TextGenerationPipeline extends PipelineBase {
  /** As many answers to one prompt, with seeds that count up from a given one. */
  (prompt: Prompt, options: GenerationOptions & { readonly n: number }): Promise<Completion[]>;
  (prompt: Prompt, options?: GenerationOptions): Promise<Completion>;
  /** Answers to several prompts, `maxBatch` of them side by side. */
  (prompts: readonly Prompt[], options?: GenerationOptions): Promise<Completion[]>;
  /**
   * The answer as it is written, in texts of whole characters. Leaving the loop ends it. What the generator returns at the
   * end is the whole answer.
   *
   *     for await (const text of generator.stream("Once upon a time")) process.stdout.write(text);
   */
  stream(prompt: Prompt, options?: GenerationOptions): AsyncGenerator<string, Completion, undefined>;
}

/** The vector of a text, of shape [size]; of several texts [texts, size]. */
export interface FeatureExtractionPipeline extends PipelineBase {
  (texts: TextInput | readonly TextInput[], options?: CallOptions): Promise<Tensor<"float32">>;
}

/** The labels of a text, the likeliest first. */
export interface TextClassificationPipeline extends PipelineBase {
  readonly labels: readonly string[];
  (text: TextInput, options?: RankOptions): Promise<LabelScore[]>;
  (texts: readonly TextInput[], options?: RankOptions): Promise<LabelScore[][]>;
}

/** For each mask in a text the likeliest tokens, the likeliest first. */
export interface FillMaskPipeline extends PipelineBase {
  /** What stands for a missing word, such as "[MASK]"; null where the tokenizer has no such token. */
  readonly maskToken: string | null;
  (text: TextInput, options?: FillMaskOptions): Promise<MaskFilling[][]>;
  (texts: readonly TextInput[], options?: FillMaskOptions): Promise<MaskFilling[][][]>;
}

/** The labels of a picture, the likeliest first. */
export interface ImageClassificationPipeline extends PipelineBase {
  readonly labels: readonly string[];
  (image: ImageInput, options?: RankOptions): Promise<LabelScore[]>;
  (images: readonly ImageInput[], options?: RankOptions): Promise<LabelScore[][]>;
}

/** Which of some labels a picture shows, the likeliest first. */
export interface ZeroShotImageClassificationPipeline extends PipelineBase {
  (image: ImageInput, labels: readonly string[], options?: ZeroShotOptions): Promise<LabelScore[]>;
  (
    images: readonly ImageInput[],
    labels: readonly string[],
    options?: ZeroShotOptions,
  ): Promise<LabelScore[][]>;
}

/** The text of a sound. A sound of more `seconds` than the model reads is read in parts of that length. */
export interface SpeechRecognitionPipeline extends PipelineBase {
  readonly seconds: number;
  (sound: SoundInput, options?: TranscriptionOptions): Promise<Transcription>;
  (sounds: readonly SoundInput[], options?: TranscriptionOptions): Promise<Transcription[]>;
}

/** The objects in a picture, the likeliest first. */
export interface ObjectDetectionPipeline extends PipelineBase {
  readonly labels: readonly string[];
  (image: ImageInput, options?: DetectionOptions): Promise<DetectedObject[]>;
  (images: readonly ImageInput[], options?: DetectionOptions): Promise<DetectedObject[][]>;
}

/** The pipeline of each task. */
export interface Pipelines {
  "text-generation": TextGenerationPipeline;
  "feature-extraction": FeatureExtractionPipeline;
  "text-classification": TextClassificationPipeline;
  "fill-mask": FillMaskPipeline;
  "image-classification": ImageClassificationPipeline;
  "zero-shot-image-classification": ZeroShotImageClassificationPipeline;
  "automatic-speech-recognition": SpeechRecognitionPipeline;
  "object-detection": ObjectDetectionPipeline;
}

export type Task = keyof Pipelines;

/** The options of a task. */
export type OptionsOf<T extends Task> = T extends "feature-extraction"
  ? FeatureExtractionOptions
  : PipelineOptions;

/** `Polygrad.pipeline`. */
export type MakePipeline = <T extends Task>(
  task: T,
  model: ModelSource,
  options?: OptionsOf<T>,
) => Promise<Pipelines[T]>;
