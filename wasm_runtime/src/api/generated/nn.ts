// Generated from the API manifest by scripts/generate_api.mjs (`make api`): do not edit.

import {
  addPythonNames,
  callNested,
  callStateDict,
  callTensor,
  callTensorList,
  callTensors,
  callValue,
  callVoid,
} from "../calls";
import type { DTypeName } from "../dtypes";
import { owner } from "../handle";
import type { StateDict } from "../models";
import { PythonObject, type Constructor, type Shape } from "../object";
import type { Session } from "../session";
import { callWithFunction } from "../traced";
import type { Tensor } from "./tensor";

/** Arguments of `nn.GRU` by name. */
export interface GRUOptions {
  /** 1 unless given. */ readonly numLayers?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  /** false unless given. */ readonly batchFirst?: boolean | undefined;
  /** 0 unless given. */ readonly dropout?: number | undefined;
  /** false unless given. */ readonly bidirectional?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type GRUArguments =
  | [inputSize: number, hiddenSize: number, options?: GRUOptions]
  | [inputSize: number, hiddenSize: number, numLayers: number, options?: GRUOptions];

/**
 * Layers of gated recurrent units over sequences: x (length, n, inputSize) to (outputs, h).
 *
 * As torch.nn.GRU; shapes and arguments are those of LSTM. Throws ArgumentError.
 *
 * ```js
 * const [outputs, h] = new nn.GRU(3, 5, { bidirectional: true }).forward(Tensor.rand(7, 2, 3));
 * [(await outputs.ready()).shape, (await h.ready()).shape]; // [[7, 2, 10], [2, 2, 5]]
 * ```
 */
export class GRU extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.GRU",
    tensors: [
      { name: "weight_ih_l0" },
      { name: "weight_hh_l0" },
      { name: "bias_ih_l0", flag: { name: "bias", position: 3, default: true } },
      { name: "bias_hh_l0", flag: { name: "bias", position: 3, default: true } },
    ],
    values: ["input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get inputSize(): number {
    return PythonObject.value(this, "input_size") as number;
  }

  /** In a worker known after `ready()`. */
  get hiddenSize(): number {
    return PythonObject.value(this, "hidden_size") as number;
  }

  /** In a worker known after `ready()`. */
  get numLayers(): number {
    return PythonObject.value(this, "num_layers") as number;
  }

  /** In a worker known after `ready()`. */
  get bias(): boolean {
    return PythonObject.value(this, "bias") as boolean;
  }

  /** In a worker known after `ready()`. */
  get batchFirst(): boolean {
    return PythonObject.value(this, "batch_first") as boolean;
  }

  /** In a worker known after `ready()`. */
  get dropout(): number {
    return PythonObject.value(this, "dropout") as number;
  }

  /** In a worker known after `ready()`. */
  get bidirectional(): boolean {
    return PythonObject.value(this, "bidirectional") as boolean;
  }

  get weightIhL0(): Tensor {
    return PythonObject.tensor(this, "weight_ih_l0");
  }

  set weightIhL0(value: Tensor) {
    PythonObject.assign(this, "weight_ih_l0", value);
  }

  get weightHhL0(): Tensor {
    return PythonObject.tensor(this, "weight_hh_l0");
  }

  set weightHhL0(value: Tensor) {
    PythonObject.assign(this, "weight_hh_l0", value);
  }

  /** null without `bias`. */
  get biasIhL0(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias_ih_l0");
  }

  set biasIhL0(value: Tensor | null) {
    PythonObject.assign(this, "bias_ih_l0", value);
  }

  /** null without `bias`. */
  get biasHhL0(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias_hh_l0");
  }

  set biasHhL0(value: Tensor | null) {
    PythonObject.assign(this, "bias_hh_l0", value);
  }

  /** `h`: the state before the first step, zeros unless given. Throws ShapeError. */
  forward(
    ...args:
      [x: Tensor, options?: GRUForwardOptions] | [x: Tensor, h: Tensor | null, options?: GRUForwardOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "nn.GRU.__call__", [this, ...args], 2) as [Tensor, Tensor];
  }
}
addPythonNames(GRU);
/** Arguments of `nn.GRU.forward` by name. */
export interface GRUForwardOptions {
  readonly h?: Tensor | null | undefined;
}

/** Arguments of `nn.LSTM` by name. */
export interface LSTMOptions {
  /** 1 unless given. */ readonly numLayers?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  /** false unless given. */ readonly batchFirst?: boolean | undefined;
  /** 0 unless given. */ readonly dropout?: number | undefined;
  /** false unless given. */ readonly bidirectional?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type LSTMArguments =
  | [inputSize: number, hiddenSize: number, options?: LSTMOptions]
  | [inputSize: number, hiddenSize: number, numLayers: number, options?: LSTMOptions];

/**
 * Layers of LSTM over sequences: x (length, n, inputSize) to (outputs, (h, c)), as torch.nn.LSTM.
 *
 * outputs (length, n, directions * hiddenSize); h and c, the state after the last step, (numLayers *
 * directions, n, hiddenSize). `batchFirst`: x and the outputs are (n, length, ...). Without a batch, n is
 * missing everywhere. `dropout`: in training, between layers. Throws ArgumentError.
 *
 * ```js
 * const [outputs, [h, c]] = new nn.LSTM(3, 5).forward(Tensor.rand(7, 2, 3));
 * [(await outputs.ready()).shape, (await h.ready()).shape]; // [[7, 2, 5], [1, 2, 5]]
 * ```
 */
export class LSTM extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.LSTM",
    tensors: [
      { name: "weight_ih_l0" },
      { name: "weight_hh_l0" },
      { name: "bias_ih_l0", flag: { name: "bias", position: 3, default: true } },
      { name: "bias_hh_l0", flag: { name: "bias", position: 3, default: true } },
    ],
    values: ["input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get inputSize(): number {
    return PythonObject.value(this, "input_size") as number;
  }

  /** In a worker known after `ready()`. */
  get hiddenSize(): number {
    return PythonObject.value(this, "hidden_size") as number;
  }

  /** In a worker known after `ready()`. */
  get numLayers(): number {
    return PythonObject.value(this, "num_layers") as number;
  }

  /** In a worker known after `ready()`. */
  get bias(): boolean {
    return PythonObject.value(this, "bias") as boolean;
  }

  /** In a worker known after `ready()`. */
  get batchFirst(): boolean {
    return PythonObject.value(this, "batch_first") as boolean;
  }

  /** In a worker known after `ready()`. */
  get dropout(): number {
    return PythonObject.value(this, "dropout") as number;
  }

  /** In a worker known after `ready()`. */
  get bidirectional(): boolean {
    return PythonObject.value(this, "bidirectional") as boolean;
  }

  get weightIhL0(): Tensor {
    return PythonObject.tensor(this, "weight_ih_l0");
  }

  set weightIhL0(value: Tensor) {
    PythonObject.assign(this, "weight_ih_l0", value);
  }

  get weightHhL0(): Tensor {
    return PythonObject.tensor(this, "weight_hh_l0");
  }

  set weightHhL0(value: Tensor) {
    PythonObject.assign(this, "weight_hh_l0", value);
  }

  /** null without `bias`. */
  get biasIhL0(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias_ih_l0");
  }

  set biasIhL0(value: Tensor | null) {
    PythonObject.assign(this, "bias_ih_l0", value);
  }

  /** null without `bias`. */
  get biasHhL0(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias_hh_l0");
  }

  set biasHhL0(value: Tensor | null) {
    PythonObject.assign(this, "bias_hh_l0", value);
  }

  /** `hc`: the state before the first step, zeros unless given. Throws ShapeError. */
  forward(
    ...args:
      | [x: Tensor, options?: LSTMForwardOptions]
      | [x: Tensor, hc: readonly Tensor[] | null, options?: LSTMForwardOptions]
  ): [Tensor, [Tensor, Tensor]] {
    return callNested(this[owner], "nn.LSTM.__call__", [this, ...args], [null, 2]) as [
      Tensor,
      [Tensor, Tensor],
    ];
  }
}
addPythonNames(LSTM);
/** Arguments of `nn.LSTM.forward` by name. */
export interface LSTMForwardOptions {
  readonly hc?: readonly Tensor[] | null | undefined;
}

/** Arguments of `nn.BatchNorm` by name. */
export interface BatchNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly affine?: boolean | undefined;
  /** true unless given. */ readonly trackRunningStats?: boolean | undefined;
  /** 0.1 unless given. */ readonly momentum?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type BatchNormArguments =
  [sz: number, options?: BatchNormOptions] | [sz: number, eps: number, options?: BatchNormOptions];

/**
 * Batch normalisation over every axis but 1, with running statistics when not `Tensor.training`.
 *
 * The statistics never get a gradient, so an optimizer does not change them, even after `requiresGrad_()`
 * on everything that `nn.state.getParameters` finds. 16-bit floats are normalised in float32; the result
 * has the dtype that x and weight promote to.
 *
 * ```js
 * (await new nn.BatchNorm(3).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 3, 8, 8]
 * ```
 */
export class BatchNorm extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.BatchNorm",
    tensors: [
      { name: "weight", flag: { name: "affine", position: 2, default: true } },
      { name: "bias", flag: { name: "affine", position: 2, default: true } },
      { name: "num_batches_tracked" },
      { name: "running_mean", flag: { name: "track_running_stats", position: 3, default: true } },
      { name: "running_var", flag: { name: "track_running_stats", position: 3, default: true } },
    ],
    values: ["eps", "track_running_stats", "momentum"],
  };

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get trackRunningStats(): boolean {
    return PythonObject.value(this, "track_running_stats") as boolean;
  }

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return PythonObject.value(this, "momentum") as number;
  }

  /** null without `affine`. */
  get weight(): Tensor | null {
    return PythonObject.optionalTensor(this, "weight");
  }

  set weight(value: Tensor | null) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `affine`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  get numBatchesTracked(): Tensor {
    return PythonObject.tensor(this, "num_batches_tracked");
  }

  set numBatchesTracked(value: Tensor) {
    PythonObject.assign(this, "num_batches_tracked", value);
  }

  /** null without `trackRunningStats`. */
  get runningMean(): Tensor | null {
    return PythonObject.optionalTensor(this, "running_mean");
  }

  set runningMean(value: Tensor | null) {
    PythonObject.assign(this, "running_mean", value);
  }

  /** null without `trackRunningStats`. */
  get runningVar(): Tensor | null {
    return PythonObject.optionalTensor(this, "running_var");
  }

  set runningVar(value: Tensor | null) {
    PythonObject.assign(this, "running_var", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.BatchNorm.__call__", [this, x]);
  }
}
addPythonNames(BatchNorm);

/** Arguments of `nn.Bilinear` by name. */
export interface BilinearOptions {
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type BilinearArguments = [
  in1Features: number,
  in2Features: number,
  outFeatures: number,
  options?: BilinearOptions,
];

/**
 * x1ᵀ · weight[k] · x2 + bias[k] for each output feature k: (..., in1) and (..., in2) to (..., out).
 *
 * weight (out, in1, in2) and bias (out) start uniform in ±1/sqrt(in1Features).
 *
 * ```js
 * (await new nn.Bilinear(3, 4, 5).forward(Tensor.rand(2, 3), Tensor.rand(2, 4)).ready()).shape; // [2, 5]
 * ```
 */
export class Bilinear extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Bilinear",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 3, default: true } }],
    values: [],
  };

  get weight(): Tensor {
    return PythonObject.tensor(this, "weight");
  }

  set weight(value: Tensor) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `bias`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  /** Throws ShapeError unless all axes but the last are the same. */
  forward(x1: Tensor, x2: Tensor): Tensor {
    return callTensor(this[owner], "nn.Bilinear.__call__", [this, x1, x2]);
  }
}
addPythonNames(Bilinear);

/** Arguments of `nn.Conv2d` by name. */
export interface Conv2dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type Conv2dArguments =
  | [inChannels: number, outChannels: number, kernelSize: number | readonly number[], options?: Conv2dOptions]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      options?: Conv2dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      padding: number | readonly number[] | "same" | "valid",
      options?: Conv2dOptions,
    ];

/**
 * conv2d with weight (out, in/groups, *kernel) and bias (out); `padding` may be 'same' or 'valid'.
 *
 * As many spatial axes as `kernelSize` has integers; an integer is two. Both start uniform in ±1/sqrt(fan in).
 * Throws ArgumentError for invalid sizes.
 *
 * ```js
 * (await new nn.Conv2d(3, 16, 3, { padding: "same" }).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 16, 8, 8]
 * ```
 */
export class Conv2d extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Conv2d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 7, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding"],
  };

  /** In a worker known after `ready()`. */
  get kernelSize(): readonly number[] {
    return PythonObject.value(this, "kernel_size") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get stride(): number | readonly number[] {
    return PythonObject.value(this, "stride") as number | readonly number[];
  }

  /** In a worker known after `ready()`. */
  get dilation(): number | readonly number[] {
    return PythonObject.value(this, "dilation") as number | readonly number[];
  }

  /** In a worker known after `ready()`. */
  get groups(): number {
    return PythonObject.value(this, "groups") as number;
  }

  /** In a worker known after `ready()`. */
  get padding(): number | readonly number[] {
    return PythonObject.value(this, "padding") as number | readonly number[];
  }

  get weight(): Tensor {
    return PythonObject.tensor(this, "weight");
  }

  set weight(value: Tensor) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `bias`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  /** (n, in, *spatial), or (in, *spatial), convolved. Throws ShapeError. */
  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.Conv2d.__call__", [this, x]);
  }
}
addPythonNames(Conv2d);

/** Arguments of `nn.ConvTranspose2d` by name. */
export interface ConvTranspose2dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 0 unless given. */ readonly outputPadding?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type ConvTranspose2dArguments =
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      options?: ConvTranspose2dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      options?: ConvTranspose2dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      padding: number | readonly number[] | "same" | "valid",
      options?: ConvTranspose2dOptions,
    ];

/**
 * The transpose (gradient) of Conv2d, which makes images larger: weight (in, out/groups, *kernel).
 *
 * The new size of each spatial axis is (size - 1) * stride - 2 * padding + dilation * (kernel - 1) +
 * outputPadding + 1. Throws ArgumentError, also for an outputPadding that is smaller than neither stride
 * nor dilation.
 *
 * ```js
 * (await new nn.ConvTranspose2d(3, 16, 2, { stride: 2 }).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 16, 16, 16]
 * ```
 */
export class ConvTranspose2d extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.ConvTranspose2d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 8, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding", "output_padding"],
  };

  /** In a worker known after `ready()`. */
  get kernelSize(): readonly number[] {
    return PythonObject.value(this, "kernel_size") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get stride(): number | readonly number[] {
    return PythonObject.value(this, "stride") as number | readonly number[];
  }

  /** In a worker known after `ready()`. */
  get dilation(): number | readonly number[] {
    return PythonObject.value(this, "dilation") as number | readonly number[];
  }

  /** In a worker known after `ready()`. */
  get groups(): number {
    return PythonObject.value(this, "groups") as number;
  }

  /** In a worker known after `ready()`. */
  get padding(): number | readonly number[] {
    return PythonObject.value(this, "padding") as number | readonly number[];
  }

  get weight(): Tensor {
    return PythonObject.tensor(this, "weight");
  }

  set weight(value: Tensor) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `bias`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  /** In a worker known after `ready()`. */
  get outputPadding(): number | readonly number[] {
    return PythonObject.value(this, "output_padding") as number | readonly number[];
  }

  /** (n, in, *spatial), or (in, *spatial), to as many out channels. Throws ShapeError. */
  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.ConvTranspose2d.__call__", [this, x]);
  }
}
addPythonNames(ConvTranspose2d);

/** Arguments of `nn.Embedding` by name. */
export interface EmbeddingOptions {
  readonly dtype?: DTypeName | null | undefined;
}

export type EmbeddingArguments =
  | [vocabSize: number, embedSize: number, options?: EmbeddingOptions]
  | [vocabSize: number, embedSize: number, dtype: DTypeName | null, options?: EmbeddingOptions];

/**
 * Rows of a table by integer: (...) to (..., embedSize).
 *
 * The table starts uniform by Glorot, as tinygrad's; torch's starts with deviation 1.
 *
 * ```js
 * (await new nn.Embedding(100, 8).forward(new Tensor([[1, 5, 7]], { dtype: "int32" })).ready()).shape; // [1, 3, 8]
 * ```
 */
export class Embedding extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Embedding",
    tensors: [{ name: "weight" }],
    values: ["vocab_sz", "embed_sz"],
  };

  /** In a worker known after `ready()`. */
  get vocabSz(): number {
    return PythonObject.value(this, "vocab_sz") as number;
  }

  /** In a worker known after `ready()`. */
  get embedSz(): number {
    return PythonObject.value(this, "embed_sz") as number;
  }

  get weight(): Tensor {
    return PythonObject.tensor(this, "weight");
  }

  set weight(value: Tensor) {
    PythonObject.assign(this, "weight", value);
  }

  /** Throws DTypeError unless `idx` is of integers, AxisError for integers out of range. */
  forward(idx: Tensor): Tensor {
    return callTensor(this[owner], "nn.Embedding.__call__", [this, idx]);
  }
}
addPythonNames(Embedding);

/** Arguments of `nn.GroupNorm` by name. */
export interface GroupNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly affine?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type GroupNormArguments =
  | [numGroups: number, numChannels: number, options?: GroupNormOptions]
  | [numGroups: number, numChannels: number, eps: number, options?: GroupNormOptions];

/**
 * Normalisation of `numGroups` groups of the channels (axis 1), then weight and bias per channel.
 *
 * Throws ArgumentError unless the channels divide into that many groups.
 *
 * ```js
 * (await new nn.GroupNorm(2, 4).forward(Tensor.rand(2, 4, 8, 8)).ready()).shape; // [2, 4, 8, 8]
 * ```
 */
export class GroupNorm extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.GroupNorm",
    tensors: [
      { name: "weight", flag: { name: "affine", position: 3, default: true } },
      { name: "bias", flag: { name: "affine", position: 3, default: true } },
    ],
    values: ["num_groups", "num_channels", "eps"],
  };

  /** In a worker known after `ready()`. */
  get numGroups(): number {
    return PythonObject.value(this, "num_groups") as number;
  }

  /** In a worker known after `ready()`. */
  get numChannels(): number {
    return PythonObject.value(this, "num_channels") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** null without `affine`. */
  get weight(): Tensor | null {
    return PythonObject.optionalTensor(this, "weight");
  }

  set weight(value: Tensor | null) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `affine`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  /** (n, channels, ...) normalised. Throws ShapeError. */
  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.GroupNorm.__call__", [this, x]);
  }
}
addPythonNames(GroupNorm);

/** Arguments of `nn.LSTMCell` by name. */
export interface LSTMCellOptions {
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type LSTMCellArguments = [inputSize: number, hiddenSize: number, options?: LSTMCellOptions];

/**
 * One step of an LSTM: x (n, inputSize) and a state (h, c), both (n, hiddenSize), to the next one.
 *
 * ```js
 * const [h, c] = new nn.LSTMCell(3, 5).forward(Tensor.rand(2, 3));
 * [(await h.ready()).shape, (await c.ready()).shape]; // [[2, 5], [2, 5]]
 * ```
 */
export class LSTMCell extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.LSTMCell",
    tensors: [
      { name: "weight_ih" },
      { name: "weight_hh" },
      { name: "bias_ih", flag: { name: "bias", position: 2, default: true } },
      { name: "bias_hh", flag: { name: "bias", position: 2, default: true } },
    ],
    values: ["hidden_size"],
  };

  /** In a worker known after `ready()`. */
  get hiddenSize(): number {
    return PythonObject.value(this, "hidden_size") as number;
  }

  get weightIh(): Tensor {
    return PythonObject.tensor(this, "weight_ih");
  }

  set weightIh(value: Tensor) {
    PythonObject.assign(this, "weight_ih", value);
  }

  get weightHh(): Tensor {
    return PythonObject.tensor(this, "weight_hh");
  }

  set weightHh(value: Tensor) {
    PythonObject.assign(this, "weight_hh", value);
  }

  /** null without `bias`. */
  get biasIh(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias_ih");
  }

  set biasIh(value: Tensor | null) {
    PythonObject.assign(this, "bias_ih", value);
  }

  /** null without `bias`. */
  get biasHh(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias_hh");
  }

  set biasHh(value: Tensor | null) {
    PythonObject.assign(this, "bias_hh", value);
  }

  /** `hc`: zeros unless given. Throws ShapeError. */
  forward(
    ...args:
      | [x: Tensor, options?: LSTMCellForwardOptions]
      | [x: Tensor, hc: readonly Tensor[] | null, options?: LSTMCellForwardOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "nn.LSTMCell.__call__", [this, ...args], 2) as [Tensor, Tensor];
  }
}
addPythonNames(LSTMCell);
/** Arguments of `nn.LSTMCell.forward` by name. */
export interface LSTMCellForwardOptions {
  readonly hc?: readonly Tensor[] | null | undefined;
}

/** Arguments of `nn.LayerNorm` by name. */
export interface LayerNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly elementwiseAffine?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type LayerNormArguments =
  | [normalizedShape: number | readonly number[], options?: LayerNormOptions]
  | [normalizedShape: number | readonly number[], eps: number, options?: LayerNormOptions];

/**
 * Layer normalisation over the last axes, of shape `normalizedShape`, then weight and bias.
 *
 * ```js
 * await new nn.LayerNorm(3).forward(new Tensor([1, 2, 3])).tolist(); // ≈ [-1.2247, 0, 1.2247]
 * ```
 */
export class LayerNorm extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.LayerNorm",
    tensors: [
      { name: "weight", flag: { name: "elementwise_affine", position: 2, default: true } },
      { name: "bias", flag: { name: "elementwise_affine", position: 2, default: true } },
    ],
    values: ["normalized_shape", "eps", "axis"],
  };

  /** In a worker known after `ready()`. */
  get normalizedShape(): readonly number[] {
    return PythonObject.value(this, "normalized_shape") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get axis(): readonly number[] {
    return PythonObject.value(this, "axis") as readonly number[];
  }

  /** null without `elementwiseAffine`. */
  get weight(): Tensor | null {
    return PythonObject.optionalTensor(this, "weight");
  }

  set weight(value: Tensor | null) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `elementwiseAffine`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  /** Throws ShapeError unless the last axes of `x` are those of the layer. */
  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.LayerNorm.__call__", [this, x]);
  }
}
addPythonNames(LayerNorm);

/** Arguments of `nn.Linear` by name. */
export interface LinearOptions {
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type LinearArguments = [inFeatures: number, outFeatures: number, options?: LinearOptions];

/**
 * x · weightᵀ + bias: (..., inFeatures) to (..., outFeatures).
 *
 * weight (out, in) and bias (out) start uniform in ±1/sqrt(inFeatures).
 *
 * ```js
 * const layer = new nn.Linear(3, 5);
 * [(await layer.forward(Tensor.rand(2, 3)).ready()).shape, (await layer.weight.ready()).shape]; // [[2, 5], [5, 3]]
 * ```
 */
export class Linear extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Linear",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 2, default: true } }],
    values: [],
  };

  get weight(): Tensor {
    return PythonObject.tensor(this, "weight");
  }

  set weight(value: Tensor) {
    PythonObject.assign(this, "weight", value);
  }

  /** null without `bias`. */
  get bias(): Tensor | null {
    return PythonObject.optionalTensor(this, "bias");
  }

  set bias(value: Tensor | null) {
    PythonObject.assign(this, "bias", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.Linear.__call__", [this, x]);
  }
}
addPythonNames(Linear);

/** Arguments of `nn.MultiheadAttention` by name. */
export interface MultiheadAttentionOptions {
  /** 0 unless given. */ readonly dropout?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly kdim?: number | null | undefined;
  readonly vdim?: number | null | undefined;
  /** false unless given. */ readonly batchFirst?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type MultiheadAttentionArguments =
  | [embedDim: number, numHeads: number, options?: MultiheadAttentionOptions]
  | [embedDim: number, numHeads: number, dropout: number, options?: MultiheadAttentionOptions];

/**
 * Attention of `numHeads` heads, with torch.nn.MultiheadAttention's parameters and masks.
 *
 * query (length, n, embedDim), key (keys, n, kdim) and value (keys, n, vdim) give (outputs, weights):
 * outputs like the query, weights (n, length, keys). With `batchFirst` n comes first; without a batch it is
 * missing. If kdim and vdim equal embedDim, `inProjWeight` holds all three projections. `dropout`: of the
 * weights, in training. Throws ArgumentError.
 *
 * ```js
 * const x = Tensor.rand(7, 2, 8);
 * const [outputs, weights] = new nn.MultiheadAttention(8, 2).forward(x, x, x);
 * [(await outputs.ready()).shape, (await weights.ready()).shape]; // [[7, 2, 8], [2, 7, 7]]
 * ```
 */
export class MultiheadAttention extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.MultiheadAttention",
    tensors: [{ name: "in_proj_bias", flag: { name: "bias", position: 3, default: true } }],
    values: ["embed_dim", "num_heads", "dropout", "batch_first"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get embedDim(): number {
    return PythonObject.value(this, "embed_dim") as number;
  }

  /** In a worker known after `ready()`. */
  get numHeads(): number {
    return PythonObject.value(this, "num_heads") as number;
  }

  /** In a worker known after `ready()`. */
  get dropout(): number {
    return PythonObject.value(this, "dropout") as number;
  }

  /** In a worker known after `ready()`. */
  get batchFirst(): boolean {
    return PythonObject.value(this, "batch_first") as boolean;
  }

  /** null without `bias`. */
  get inProjBias(): Tensor | null {
    return PythonObject.optionalTensor(this, "in_proj_bias");
  }

  set inProjBias(value: Tensor | null) {
    PythonObject.assign(this, "in_proj_bias", value);
  }

  /**
   * (outputs, weights). The weights are lazy, so they cost nothing unless they are used.
   *
   * keyPaddingMask: (n, keys), bool: true is left out; or float, added to the scores.
   * needWeights: if false, null is returned in the place of the weights.
   * attnMask: (length, keys) or (n * numHeads, length, keys), as keyPaddingMask. Unlike
   *     `scaledDotProductAttention`, true means not to attend: this is torch's convention.
   * averageAttnWeights: weights are the mean of the heads'; else (n, numHeads, length, keys).
   * isCausal: row i attends to columns up to i; no attnMask is needed.
   *
   * Throws ShapeError, DTypeError.
   */
  forward(
    ...args:
      | [query: Tensor, key: Tensor, value: Tensor, options?: MultiheadAttentionForwardOptions]
      | [
          query: Tensor,
          key: Tensor,
          value: Tensor,
          keyPaddingMask: Tensor | null,
          options?: MultiheadAttentionForwardOptions,
        ]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "nn.MultiheadAttention.__call__", [this, ...args], 2) as [Tensor, Tensor];
  }
}
addPythonNames(MultiheadAttention);
/** Arguments of `nn.MultiheadAttention.forward` by name. */
export interface MultiheadAttentionForwardOptions {
  readonly keyPaddingMask?: Tensor | null | undefined;
  /** true unless given. */ readonly needWeights?: boolean | undefined;
  readonly attnMask?: Tensor | null | undefined;
  /** true unless given. */ readonly averageAttnWeights?: boolean | undefined;
  /** false unless given. */ readonly isCausal?: boolean | undefined;
}

/** Arguments of `nn.RMSNorm` by name. */
export interface RMSNormOptions {
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly elementwiseAffine?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type RMSNormArguments =
  | [dim: number | readonly number[], options?: RMSNormOptions]
  | [dim: number | readonly number[], eps: number, options?: RMSNormOptions];

/**
 * x / sqrt(mean(x²) + eps) over the last axes, of shape `dim` (an integer: one axis), times weight.
 *
 * Computed in float32 (Zhang and Sennrich, 2019).
 *
 * ```js
 * await new nn.RMSNorm(2).forward(new Tensor([3, 4])).tolist(); // ≈ [0.8485, 1.1314]
 * ```
 */
export class RMSNorm extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.RMSNorm",
    tensors: [{ name: "weight", flag: { name: "elementwise_affine", position: 2, default: true } }],
    values: ["normalized_shape", "eps"],
  };

  /** In a worker known after `ready()`. */
  get normalizedShape(): readonly number[] {
    return PythonObject.value(this, "normalized_shape") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** null without `elementwiseAffine`. */
  get weight(): Tensor | null {
    return PythonObject.optionalTensor(this, "weight");
  }

  set weight(value: Tensor | null) {
    PythonObject.assign(this, "weight", value);
  }

  /** Throws ShapeError unless the last axes of `x` are those of the layer. */
  forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.RMSNorm.__call__", [this, x]);
  }
}
addPythonNames(RMSNorm);

/** Arguments of `nn.TransformerBlock` by name. */
export interface TransformerBlockOptions {
  readonly ffDim?: number | null | undefined;
  /** 0 unless given. */ readonly dropout?: number | undefined;
  /** "gelu" unless given. */ readonly activation?: "relu" | "gelu" | "gelu_tanh" | "silu" | undefined;
  /** true unless given. */ readonly normFirst?: boolean | undefined;
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type TransformerBlockArguments =
  | [embedDim: number, numHeads: number, options?: TransformerBlockOptions]
  | [embedDim: number, numHeads: number, ffDim: number | null, options?: TransformerBlockOptions]
  | [
      embedDim: number,
      numHeads: number,
      ffDim: number | null,
      dropout: number,
      options?: TransformerBlockOptions,
    ];

/**
 * Self-attention and two linear layers, each with a normalisation and a residual connection.
 *
 * x (n, length, embedDim) to the same shape. Parameters are those of torch.nn.TransformerEncoderLayer(...,
 * batchFirst: true), by its names. `ffDim`: between the linear layers, 4 * embedDim unless given.
 * `normFirst`: normalise the input of each part (Xiong et al., 2020), else the sum after the residual
 * connection, as in the original. `activation`: 'relu', 'gelu', 'gelu_tanh', 'silu', or a function of a
 * Tensor.
 *
 * Throws ArgumentError.
 *
 * ```js
 * (await new nn.TransformerBlock(8, 2).forward(Tensor.rand(2, 7, 8)).ready()).shape; // [2, 7, 8]
 * ```
 */
export class TransformerBlock extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.TransformerBlock",
    tensors: [],
    values: ["dropout", "norm_first", "activation"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get dropout(): number {
    return PythonObject.value(this, "dropout") as number;
  }

  /** In a worker known after `ready()`. */
  get normFirst(): boolean {
    return PythonObject.value(this, "norm_first") as boolean;
  }

  /** In a worker known after `ready()`. */
  get activation(): string {
    return PythonObject.value(this, "activation") as string;
  }

  /** Masks as in MultiheadAttention: true, or -infinity, is left out. Throws ShapeError, DTypeError. */
  forward(
    ...args:
      | [x: Tensor, options?: TransformerBlockForwardOptions]
      | [x: Tensor, attnMask: Tensor | null, options?: TransformerBlockForwardOptions]
      | [
          x: Tensor,
          attnMask: Tensor | null,
          keyPaddingMask: Tensor | null,
          options?: TransformerBlockForwardOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "nn.TransformerBlock.__call__", [this, ...args]);
  }
}
addPythonNames(TransformerBlock);
/** Arguments of `nn.TransformerBlock.forward` by name. */
export interface TransformerBlockForwardOptions {
  readonly attnMask?: Tensor | null | undefined;
  readonly keyPaddingMask?: Tensor | null | undefined;
  /** false unless given. */ readonly isCausal?: boolean | undefined;
}

/**
 * The base of schedulers: `count`, a Tensor with the number of steps taken.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.StepLR(optimizer, 1);
 * scheduler.step();
 * await scheduler.count.item(); // 1
 * ```
 */
export class LRScheduler extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.LRScheduler",
    tensors: [{ name: "count" }],
    values: [],
  };

  get count(): Tensor {
    return PythonObject.tensor(this, "count");
  }

  set count(value: Tensor) {
    PythonObject.assign(this, "count", value);
  }

  /**
   * Count one step, and write the new learning rates.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.ExponentialLR(optimizer, 0.5);
   * scheduler.step();
   * await optimizer.lr.item(); // 0.5
   * ```
   */
  step(): void {
    callVoid(this[owner], "nn.optim.LRScheduler.step", [this]);
  }

  /**
   * The current learning rate of each parameter group.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * await new nn.optim.ConstantLR(optimizer, 0.5).getLastLr(); // [0.5]
   * ```
   */
  getLastLr(): Promise<readonly number[]> {
    return callValue(this[owner], "nn.optim.LRScheduler.get_last_lr", [this]);
  }

  /**
   * The scheduler's state: its number of steps. The rates belong to the optimizer.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.ExponentialLR(optimizer, 0.5);
   * scheduler.step();
   * const state = await scheduler.stateDict();
   * await state.count.item(); // 1
   * ```
   */
  stateDict(): Promise<StateDict> {
    return callStateDict(this[owner], "nn.optim.LRScheduler.state_dict", [this]);
  }

  /**
   * Restore the state that `stateDict` returned, and write the learning rates. Throws ArgumentError,
   * ShapeError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.ExponentialLR(optimizer, 0.5);
   * scheduler.loadStateDict({ count: new Tensor([2]) });
   * await optimizer.lr.item(); // 0.25
   * ```
   */
  loadStateDict(stateDict: Readonly<Record<string, Tensor>>): void {
    callVoid(this[owner], "nn.optim.LRScheduler.load_state_dict", [this, stateDict, {}]);
  }
}
addPythonNames(LRScheduler);

/**
 * The base of optimizers: the trained Tensors, and the learning rate `lr`, a Tensor that may be assigned.
 *
 * `params`: Tensors, or objects as { params: Tensors, lr: 0.01 } with the options of a parameter group; `lr`
 * is the rate of the first group. A frozen Tensor (`requiresGrad: false`) is trained as soon as it requires
 * a gradient. `initialLr`: the value of `lr` when its first scheduler was made. Throws ArgumentError if no
 * parameter requires a gradient, for a buffer (`nn.Buffer`), and for invalid numbers: a negative learning
 * rate, momentum or weight decay, a decay of moments outside of [0, 1).
 *
 * ```js
 * const w = new Tensor([1], { requiresGrad: true });
 * const optimizer = new nn.optim.SGD([w], { lr: 0.1 });
 * optimizer.lr = 0.5;
 * await optimizer.lr.item(); // 0.5
 * ```
 */
export class Optimizer extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Optimizer",
    tensors: [{ name: "lr" }],
    values: ["max_norm", "max_value", "device", "initial_lr"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get maxNorm(): number | null {
    return PythonObject.value(this, "max_norm") as number | null;
  }

  /** In a worker known after `ready()`. */
  get maxValue(): number | null {
    return PythonObject.value(this, "max_value") as number | null;
  }

  /** A promise: how many there are is known when it has been made. */
  get params(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "params");
  }

  /** A promise: how many there are is known when it has been made. */
  get buffers(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "buffers");
  }

  /** In a worker known after `ready()`. */
  get device(): string {
    return PythonObject.value(this, "device") as string;
  }

  /** The learning rate, of one element. What is assigned is written to it, also for captured steps. */
  get lr(): Tensor {
    return PythonObject.tensor(this, "lr");
  }

  set lr(value: Tensor | number) {
    PythonObject.assign(this, "lr", value);
  }

  /** In a worker known after `ready()`. */
  get initialLr(): number {
    return PythonObject.value(this, "initial_lr") as number;
  }

  /**
   * Discard the gradients; with `setToNone: false`, set existing ones to 0, in place.
   *
   * ```js
   * const w = new Tensor([1], { requiresGrad: true });
   * const optimizer = new nn.optim.SGD([w], { lr: 0.1 });
   * w.mul(w).sum().backward();
   * optimizer.zeroGrad({ setToNone: false });
   * await w.grad.tolist(); // [0]
   * ```
   */
  zeroGrad(
    ...args: [options?: OptimizerZeroGradOptions] | [setToNone: boolean, options?: OptimizerZeroGradOptions]
  ): void {
    callVoid(this[owner], "nn.optim.Optimizer.zero_grad", [this, ...args]);
  }

  /**
   * Update the parameters by their gradients, and compute the update. If `closure` is given, it is
   * called first, and its result is returned.
   *
   * Parameters without a gradient are skipped. Unread gradients of inputs with `requiresGrad: null` are
   * dropped, as they would have to be computed now, from the old parameters. Throws GradientError outside
   * of training mode, and when no parameter has a gradient.
   *
   * ```js
   * const w = new Tensor([1], { requiresGrad: true });
   * const optimizer = new nn.optim.SGD([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.8]
   * ```
   */
  step(): void {
    callVoid(this[owner], "nn.optim.Optimizer.step", [this]);
  }

  /**
   * `step`, lazily: returns the Tensors to realize.
   *
   * ```js
   * const w = new Tensor([1], { requiresGrad: true });
   * const optimizer = new nn.optim.SGD([w], { lr: 0.5 });
   * w.mul(1).sum().backward();
   * const updates = await Tensor.train(() => optimizer.scheduleStep());
   * await Promise.all(updates.map((t) => t.tolist())); // [[0.5]]
   * ```
   */
  scheduleStep(): Promise<Tensor[]> {
    return callTensorList(this[owner], "nn.optim.Optimizer.schedule_step", [this]);
  }

  /**
   * The state that steps change besides the parameters, and learning rates; other options are not
   * included. To be saved (`nn.state.safeSave`) and passed to `loadStateDict`.
   *
   * ```js
   * const state = await new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 0.5 }).stateDict();
   * await state.lr.item(); // 0.5
   * ```
   */
  stateDict(): Promise<StateDict> {
    return callStateDict(this[owner], "nn.optim.Optimizer.state_dict", [this]);
  }

  /**
   * Restore the state that `stateDict` returned for an optimizer with the same number of parameters,
   * in the same order.
   *
   * Throws ArgumentError, ShapeError.
   *
   * ```js
   * const state = await new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 0.5 }).stateDict();
   * const optimizer = new nn.optim.SGD([new Tensor([2], { requiresGrad: true })], { lr: 0.1 });
   * optimizer.loadStateDict(state);
   * await optimizer.lr.item(); // 0.5
   * ```
   */
  loadStateDict(stateDict: Readonly<Record<string, Tensor>>): void {
    callVoid(this[owner], "nn.optim.Optimizer.load_state_dict", [this, stateDict, {}]);
  }

  /**
   * From now on, scale the gradients of every step so that their joint 2-norm is at most `maxNorm`,
   * and clamp their elements to ±maxValue; null: no limit.
   *
   * This also works in captured steps. Throws ArgumentError for negative numbers.
   *
   * ```js
   * const w = new Tensor([3, 4], { requiresGrad: true });
   * const optimizer = new nn.optim.SGD([w], { lr: 1 });
   * optimizer.clipGradients({ maxNorm: 1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [2.4, 3.2]
   * ```
   */
  clipGradients(
    ...args:
      | [options?: OptimizerClipGradientsOptions]
      | [maxNorm: number | null, options?: OptimizerClipGradientsOptions]
      | [maxNorm: number | null, maxValue: number | null, options?: OptimizerClipGradientsOptions]
  ): void {
    callVoid(this[owner], "nn.optim.Optimizer.clip_gradients", [this, ...args]);
  }
}
addPythonNames(Optimizer);
/** Arguments of `nn.optim.Optimizer.zeroGrad` by name. */
export interface OptimizerZeroGradOptions {
  /** true unless given. */ readonly setToNone?: boolean | undefined;
}

/** Arguments of `nn.optim.Optimizer.clipGradients` by name. */
export interface OptimizerClipGradientsOptions {
  readonly maxNorm?: number | null | undefined;
  readonly maxValue?: number | null | undefined;
}

export type OptimizerGroupArguments = [...optimizers: (readonly Optimizer[])[]];

/**
 * Several optimizers that step together.
 *
 * ```js
 * const [w, b] = [new Tensor([1], { requiresGrad: true }), new Tensor([0], { requiresGrad: true })];
 * const optimizer = new nn.optim.OptimizerGroup(new nn.optim.SGD([w], { lr: 0.1 }), new nn.optim.Adam([b], { lr: 0.1 }));
 * Tensor.train(() => {
 *   w.mul(3).add(b).sum().backward();
 *   optimizer.step();
 * });
 * await Promise.all([w, b].map((t) => t.item())); // ≈ [0.7, -0.1]
 * ```
 */
export class OptimizerGroup extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.OptimizerGroup",
    tensors: [],
    values: ["max_norm", "max_value"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get maxNorm(): number | null {
    return PythonObject.value(this, "max_norm") as number | null;
  }

  /** In a worker known after `ready()`. */
  get maxValue(): number | null {
    return PythonObject.value(this, "max_value") as number | null;
  }

  /** A promise: how many there are is known when it has been made. */
  get params(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "params");
  }

  /**
   * The learning rate of the first optimizer. What is assigned, a number or a Tensor of one element, is
   * written to the rates of all parameter groups. Throws ArgumentError for a number below 0.
   */
  get lr(): Tensor {
    return PythonObject.tensor(this, "lr");
  }

  set lr(value: Tensor | number) {
    PythonObject.assign(this, "lr", value);
  }

  /** Discard the gradients; with `setToNone: false`, set existing ones to 0. */
  zeroGrad(
    ...args:
      | [options?: OptimizerGroupZeroGradOptions]
      | [setToNone: boolean, options?: OptimizerGroupZeroGradOptions]
  ): void {
    callVoid(this[owner], "nn.optim.OptimizerGroup.zero_grad", [this, ...args]);
  }

  /**
   * Every optimizer's step, lazily: returns the Tensors to realize. Optimizers without gradients are
   * skipped.
   */
  scheduleStep(): Promise<Tensor[]> {
    return callTensorList(this[owner], "nn.optim.OptimizerGroup.schedule_step", [this]);
  }

  /**
   * Every optimizer's step, in one Program. If `closure` is given, it is called first, and its result
   * is returned. Throws GradientError.
   */
  step(): void {
    callVoid(this[owner], "nn.optim.OptimizerGroup.step", [this]);
  }

  /** The optimizers' states, by number: `0.lr`. */
  stateDict(): Promise<StateDict> {
    return callStateDict(this[owner], "nn.optim.OptimizerGroup.state_dict", [this]);
  }

  /** Restore the state that `stateDict` returned. Throws ArgumentError, ShapeError. */
  loadStateDict(stateDict: Readonly<Record<string, Tensor>>): void {
    callVoid(this[owner], "nn.optim.OptimizerGroup.load_state_dict", [this, stateDict, {}]);
  }

  /**
   * From now on, scale the gradients of every step so that their joint 2-norm is at most `maxNorm`,
   * and clamp their elements to ±maxValue; null: no limit.
   *
   * This also works in captured steps. Throws ArgumentError for negative numbers.
   *
   * ```js
   * const w = new Tensor([3, 4], { requiresGrad: true });
   * const optimizer = new nn.optim.SGD([w], { lr: 1 });
   * optimizer.clipGradients({ maxNorm: 1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [2.4, 3.2]
   * ```
   */
  clipGradients(
    ...args:
      | [options?: OptimizerGroupClipGradientsOptions]
      | [maxNorm: number | null, options?: OptimizerGroupClipGradientsOptions]
      | [maxNorm: number | null, maxValue: number | null, options?: OptimizerGroupClipGradientsOptions]
  ): void {
    callVoid(this[owner], "nn.optim.OptimizerGroup.clip_gradients", [this, ...args]);
  }
}
addPythonNames(OptimizerGroup);
/** Arguments of `nn.optim.OptimizerGroup.zeroGrad` by name. */
export interface OptimizerGroupZeroGradOptions {
  /** true unless given. */ readonly setToNone?: boolean | undefined;
}

/** Arguments of `nn.optim.OptimizerGroup.clipGradients` by name. */
export interface OptimizerGroupClipGradientsOptions {
  readonly maxNorm?: number | null | undefined;
  readonly maxValue?: number | null | undefined;
}

/** Arguments of `nn.Conv1d` by name. */
export interface Conv1dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type Conv1dArguments =
  | [inChannels: number, outChannels: number, kernelSize: number | readonly number[], options?: Conv1dOptions]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      options?: Conv1dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      padding: number | readonly number[] | "same" | "valid",
      options?: Conv1dOptions,
    ];

/**
 * Conv2d over one axis: (n, in, length) to (n, out, new length); weight (out, in/groups, kernel).
 *
 * ```js
 * (await new nn.Conv1d(3, 16, 5).forward(Tensor.rand(2, 3, 20)).ready()).shape; // [2, 16, 16]
 * ```
 */
export class Conv1d extends Conv2d {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Conv1d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 7, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding"],
  };
}
addPythonNames(Conv1d);

/** Arguments of `nn.Conv3d` by name. */
export interface Conv3dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type Conv3dArguments =
  | [inChannels: number, outChannels: number, kernelSize: number | readonly number[], options?: Conv3dOptions]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      options?: Conv3dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      padding: number | readonly number[] | "same" | "valid",
      options?: Conv3dOptions,
    ];

/**
 * Conv2d over three axes: (n, in, d, h, w); weight (out, in/groups, kd, kh, kw).
 *
 * ```js
 * (await new nn.Conv3d(3, 4, 2).forward(Tensor.rand(1, 3, 5, 5, 5)).ready()).shape; // [1, 4, 4, 4, 4]
 * ```
 */
export class Conv3d extends Conv2d {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Conv3d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 7, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding"],
  };
}
addPythonNames(Conv3d);

/** Arguments of `nn.ConvTranspose1d` by name. */
export interface ConvTranspose1dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 0 unless given. */ readonly outputPadding?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type ConvTranspose1dArguments =
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      options?: ConvTranspose1dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      options?: ConvTranspose1dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      padding: number | readonly number[] | "same" | "valid",
      options?: ConvTranspose1dOptions,
    ];

/**
 * ConvTranspose2d over one axis: (n, in, length); weight (in, out/groups, kernel).
 *
 * ```js
 * (await new nn.ConvTranspose1d(3, 16, 2, { stride: 2 }).forward(Tensor.rand(2, 3, 8)).ready()).shape; // [2, 16, 16]
 * ```
 */
export class ConvTranspose1d extends ConvTranspose2d {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.ConvTranspose1d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 8, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding", "output_padding"],
  };
}
addPythonNames(ConvTranspose1d);

/** Arguments of `nn.ConvTranspose3d` by name. */
export interface ConvTranspose3dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 0 unless given. */ readonly outputPadding?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type ConvTranspose3dArguments =
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      options?: ConvTranspose3dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      options?: ConvTranspose3dOptions,
    ]
  | [
      inChannels: number,
      outChannels: number,
      kernelSize: number | readonly number[],
      stride: number | readonly number[],
      padding: number | readonly number[] | "same" | "valid",
      options?: ConvTranspose3dOptions,
    ];

/**
 * ConvTranspose2d over three axes: (n, in, d, h, w); weight (in, out/groups, kd, kh, kw).
 *
 * ```js
 * (await new nn.ConvTranspose3d(3, 4, 2, { stride: 2 }).forward(Tensor.rand(1, 3, 4, 4, 4)).ready()).shape; // [1, 4, 8, 8, 8]
 * ```
 */
export class ConvTranspose3d extends ConvTranspose2d {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.ConvTranspose3d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 8, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding", "output_padding"],
  };
}
addPythonNames(ConvTranspose3d);

/** Arguments of `nn.InstanceNorm` by name. */
export interface InstanceNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly affine?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type InstanceNormArguments =
  | [numFeatures: number, options?: InstanceNormOptions]
  | [numFeatures: number, eps: number, options?: InstanceNormOptions];

/**
 * Normalisation of each channel of each image by itself.
 *
 * ```js
 * (await new nn.InstanceNorm(3).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 3, 8, 8]
 * ```
 */
export class InstanceNorm extends GroupNorm {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.InstanceNorm",
    tensors: [
      { name: "weight", flag: { name: "affine", position: 2, default: true } },
      { name: "bias", flag: { name: "affine", position: 2, default: true } },
    ],
    values: ["num_groups", "num_channels", "eps"],
  };
}
addPythonNames(InstanceNorm);

/** Arguments of `nn.LayerNorm2d` by name. */
export interface LayerNorm2dOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly elementwiseAffine?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

export type LayerNorm2dArguments =
  | [normalizedShape: number, options?: LayerNorm2dOptions]
  | [normalizedShape: number, eps: number, options?: LayerNorm2dOptions];

/**
 * Layer normalisation over the channels (axis 1) of images (n, channels, h, w).
 *
 * ```js
 * (await new nn.LayerNorm2d(3).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 3, 8, 8]
 * ```
 */
export class LayerNorm2d extends LayerNorm {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.LayerNorm2d",
    tensors: [
      { name: "weight", flag: { name: "elementwise_affine", position: 2, default: true } },
      { name: "bias", flag: { name: "elementwise_affine", position: 2, default: true } },
    ],
    values: ["normalized_shape", "eps", "axis"],
  };

  /** Throws ShapeError for other axes or another number of channels. */
  override forward(x: Tensor): Tensor {
    return callTensor(this[owner], "nn.LayerNorm2d.__call__", [this, x]);
  }
}
addPythonNames(LayerNorm2d);

/** Arguments of `nn.optim.ASGD` by name. */
export interface ASGDOptions {
  /** 0.01 unless given. */ readonly lr?: number | undefined;
  /** 0.0001 unless given. */ readonly lambd?: number | undefined;
  /** 0.75 unless given. */ readonly alpha?: number | undefined;
  /** 1000000 unless given. */ readonly t0?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  readonly device?: string | null | undefined;
}

export type ASGDArguments =
  | [params: readonly Tensor[], options?: ASGDOptions]
  | [params: readonly Tensor[], lr: number, options?: ASGDOptions]
  | [params: readonly Tensor[], lr: number, lambd: number, options?: ASGDOptions];

/**
 * SGD that also keeps the mean of the parameters after step `t0`, in `ax` (Polyak and Juditsky, 1992).
 *
 * The learning rate of step t is lr / (1 + lambd lr t)^alpha; `lambd` decays the parameters, too. Until
 * `t0`, `ax` equals the parameters. As in torch, where a changed learning rate takes effect one step later.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.ASGD([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.8, -1.6]
 * ```
 */
export class ASGD extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.ASGD",
    tensors: [{ name: "lr" }, { name: "t" }],
    values: ["max_norm", "max_value", "device", "lambd", "alpha", "t0", "weight_decay"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get lambd(): number {
    return PythonObject.value(this, "lambd") as number;
  }

  /** In a worker known after `ready()`. */
  get alpha(): number {
    return PythonObject.value(this, "alpha") as number;
  }

  /** In a worker known after `ready()`. */
  get t0(): number {
    return PythonObject.value(this, "t0") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  get t(): Tensor {
    return PythonObject.tensor(this, "t");
  }

  set t(value: Tensor) {
    PythonObject.assign(this, "t", value);
  }

  /** A promise: how many there are is known when it has been made. */
  get ax(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "ax");
  }
}
addPythonNames(ASGD);

/** Arguments of `nn.optim.LARS` by name. */
export interface LARSOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly momentum?: number | undefined;
  /** 0.0001 unless given. */ readonly weightDecay?: number | undefined;
  /** false unless given. */ readonly nesterov?: boolean | undefined;
  /** true unless given. */ readonly classic?: boolean | undefined;
  /** true unless given. */ readonly preWd?: boolean | undefined;
  /** 0.001 unless given. */ readonly tcoef?: number | undefined;
  readonly device?: string | null | undefined;
}

export type LARSArguments =
  | [params: readonly Tensor[], options?: LARSOptions]
  | [params: readonly Tensor[], lr: number, options?: LARSOptions]
  | [params: readonly Tensor[], lr: number, momentum: number, options?: LARSOptions];

/**
 * Layer-wise adaptive rate scaling (You et al., 2017): SGD whose steps are scaled for each parameter.
 *
 * The scale is `tcoef` * |p| / (|g| + weightDecay * |p|), and 1 where a norm is 0. `preWd`: weight decay
 * is added to the gradient, else subtracted from the parameter. `classic`: the learning rate scales the
 * gradient before it is added to the momentum.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.LARS([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.9999, -1.9998]
 * ```
 */
export class LARS extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.LARS",
    tensors: [{ name: "lr" }],
    values: [
      "max_norm",
      "max_value",
      "device",
      "momentum",
      "weight_decay",
      "tcoef",
      "nesterov",
      "classic",
      "pre_wd",
    ],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return PythonObject.value(this, "momentum") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get tcoef(): number {
    return PythonObject.value(this, "tcoef") as number;
  }

  /** In a worker known after `ready()`. */
  get nesterov(): boolean {
    return PythonObject.value(this, "nesterov") as boolean;
  }

  /** In a worker known after `ready()`. */
  get classic(): boolean {
    return PythonObject.value(this, "classic") as boolean;
  }

  /** In a worker known after `ready()`. */
  get preWd(): boolean {
    return PythonObject.value(this, "pre_wd") as boolean;
  }

  /** A promise: how many there are is known when it has been made. */
  get b(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "b");
  }
}
addPythonNames(LARS);

/** Arguments of `nn.optim.LBFGS` by name. */
export interface LBFGSOptions {
  /** 1 unless given. */ readonly lr?: number | undefined;
  /** 20 unless given. */ readonly maxIter?: number | undefined;
  readonly maxEval?: number | null | undefined;
  /** 1e-7 unless given. */ readonly toleranceGrad?: number | undefined;
  /** 1e-9 unless given. */ readonly toleranceChange?: number | undefined;
  /** 100 unless given. */ readonly historySize?: number | undefined;
  readonly lineSearchFn?: "strong_wolfe" | null | undefined;
  readonly device?: string | null | undefined;
}

export type LBFGSArguments =
  | [params: readonly Tensor[], options?: LBFGSOptions]
  | [params: readonly Tensor[], lr: number, options?: LBFGSOptions]
  | [params: readonly Tensor[], lr: number, maxIter: number, options?: LBFGSOptions];

/**
 * The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, as torch.optim.LBFGS.
 *
 * A step gets a function that discards the gradients, computes the loss and its gradients, and returns the
 * loss. It makes up to `maxIter` iterations and calls the closure up to `maxEval` times (1.25 * maxIter
 * unless given). It ends early if no gradient is over `toleranceGrad`, or if loss and parameters change by
 * less than `toleranceChange`. `historySize`: the number of past steps that approximate the curvature.
 * `lineSearchFn`: null for steps of length `lr`, or 'strong_wolfe'. Only one parameter group. Throws
 * ArgumentError.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.LBFGS([w], { lineSearchFn: "strong_wolfe" });
 * await Tensor.train(() =>
 *   optimizer.stepWith(() => {
 *     optimizer.zeroGrad();
 *     return w.sub(3).square().sum().backward();
 *   }),
 * );
 * await w.tolist(); // ≈ [3, 3]
 * ```
 */
export class LBFGS extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.LBFGS",
    tensors: [{ name: "lr" }],
    values: [
      "max_norm",
      "max_value",
      "device",
      "max_iter",
      "max_eval",
      "tolerance_grad",
      "tolerance_change",
      "history_size",
      "line_search_fn",
      "n_iter",
      "func_evals",
    ],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get maxIter(): number {
    return PythonObject.value(this, "max_iter") as number;
  }

  /** In a worker known after `ready()`. */
  get maxEval(): number {
    return PythonObject.value(this, "max_eval") as number;
  }

  /** In a worker known after `ready()`. */
  get toleranceGrad(): number {
    return PythonObject.value(this, "tolerance_grad") as number;
  }

  /** In a worker known after `ready()`. */
  get toleranceChange(): number {
    return PythonObject.value(this, "tolerance_change") as number;
  }

  /** In a worker known after `ready()`. */
  get historySize(): number {
    return PythonObject.value(this, "history_size") as number;
  }

  /** In a worker known after `ready()`. */
  get lineSearchFn(): string | null {
    return PythonObject.value(this, "line_search_fn") as string | null;
  }

  /** In a worker known after `ready()`. */
  get nIter(): number {
    return PythonObject.value(this, "n_iter") as number;
  }

  /** In a worker known after `ready()`. */
  get funcEvals(): number {
    return PythonObject.value(this, "func_evals") as number;
  }

  /** A promise: how many there are is known when it has been made. */
  get steps(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "steps");
  }

  /** A promise: how many there are is known when it has been made. */
  get changes(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "changes");
  }

  /** A promise: how many there are is known when it has been made. */
  get last(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "last");
  }

  /**
   * Iterate; returns the loss that the first call of `closure` returned.
   *
   * `closure` clears the gradients, computes the loss and its gradients, and returns the loss. Throws
   * GradientError outside of training mode, CaptureError in a captured function, ArgumentError without a
   * closure.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.LBFGS([w], { lineSearchFn: "strong_wolfe" });
   * await Tensor.train(() =>
   *   optimizer.stepWith(() => {
   *     optimizer.zeroGrad();
   *     return w.sub(3).square().sum().backward();
   *   }),
   * );
   * (await w.sub(3).square().sum().item()) < 1e-6; // true
   * ```
   */
  stepWith(closure: () => Tensor): Promise<Tensor> {
    return callWithFunction(this[owner], "nn.optim.LBFGS.step", this, closure);
  }

  /** Throws ArgumentError: a step calls its closure, and is never lazy. */
  override scheduleStep(): Promise<Tensor[]> {
    return callTensorList(this[owner], "nn.optim.LBFGS.schedule_step", [this]);
  }

  /** History and counts, to be saved and passed to `loadStateDict`. */
  override stateDict(): Promise<StateDict> {
    return callStateDict(this[owner], "nn.optim.LBFGS.state_dict", [this]);
  }

  /** Restore the state that `stateDict` returned. Throws ArgumentError, ShapeError. */
  override loadStateDict(stateDict: Readonly<Record<string, Tensor>>): void {
    callVoid(this[owner], "nn.optim.LBFGS.load_state_dict", [this, stateDict, {}]);
  }
}
addPythonNames(LBFGS);

/** Arguments of `nn.optim.SGD` by name. */
export interface SGDOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0 unless given. */ readonly momentum?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  /** false unless given. */ readonly nesterov?: boolean | undefined;
  /** false unless given. */ readonly classic?: boolean | undefined;
  readonly device?: string | null | undefined;
}

export type SGDArguments =
  | [params: readonly Tensor[], options?: SGDOptions]
  | [params: readonly Tensor[], lr: number, options?: SGDOptions]
  | [params: readonly Tensor[], lr: number, momentum: number, options?: SGDOptions];

/**
 * Stochastic gradient descent, with momentum (Nesterov's if asked), weight decay added to the gradient.
 *
 * `classic`: the learning rate scales the gradient before it is added to the momentum.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.SGD([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.8, -1.6]
 * ```
 */
export class SGD extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.SGD",
    tensors: [{ name: "lr" }],
    values: ["max_norm", "max_value", "device", "momentum", "weight_decay", "nesterov", "classic"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return PythonObject.value(this, "momentum") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get nesterov(): boolean {
    return PythonObject.value(this, "nesterov") as boolean;
  }

  /** In a worker known after `ready()`. */
  get classic(): boolean {
    return PythonObject.value(this, "classic") as boolean;
  }

  /** A promise: how many there are is known when it has been made. */
  get b(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "b");
  }
}
addPythonNames(SGD);

/** Arguments of `nn.optim.Adadelta` by name. */
export interface AdadeltaOptions {
  /** 1 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly rho?: number | undefined;
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  readonly device?: string | null | undefined;
}

export type AdadeltaArguments =
  | [params: readonly Tensor[], options?: AdadeltaOptions]
  | [params: readonly Tensor[], lr: number, options?: AdadeltaOptions]
  | [params: readonly Tensor[], lr: number, rho: number, options?: AdadeltaOptions];

/**
 * Gradients scaled by the ratio of the RMS of past steps to the RMS of gradients (Zeiler, 2012).
 *
 * `rho`: the decay of the running means of both squares.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.Adadelta([w]);
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.9968, -1.9968]
 * ```
 */
export class Adadelta extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Adadelta",
    tensors: [{ name: "lr" }],
    values: ["max_norm", "max_value", "device", "rho", "eps", "weight_decay"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get rho(): number {
    return PythonObject.value(this, "rho") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "v");
  }

  /** A promise: how many there are is known when it has been made. */
  get steps(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "steps");
  }
}
addPythonNames(Adadelta);

/** Arguments of `nn.optim.Adagrad` by name. */
export interface AdagradOptions {
  /** 0.01 unless given. */ readonly lr?: number | undefined;
  /** 0 unless given. */ readonly lrDecay?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  /** 0 unless given. */ readonly initialAccumulatorValue?: number | undefined;
  /** 1e-10 unless given. */ readonly eps?: number | undefined;
  readonly device?: string | null | undefined;
}

export type AdagradArguments =
  | [params: readonly Tensor[], options?: AdagradOptions]
  | [params: readonly Tensor[], lr: number, options?: AdagradOptions]
  | [params: readonly Tensor[], lr: number, lrDecay: number, options?: AdagradOptions];

/**
 * Gradients divided by the root of the sum of all their squares so far (Duchi et al., 2011).
 *
 * `lrDecay`: the learning rate of step t is lr / (1 + (t - 1) lrDecay). `initialAccumulatorValue`: the
 * initial value of the sum.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.Adagrad([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.9, -1.9]
 * ```
 */
export class Adagrad extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Adagrad",
    tensors: [{ name: "lr" }, { name: "t" }],
    values: [
      "max_norm",
      "max_value",
      "device",
      "lr_decay",
      "weight_decay",
      "initial_accumulator_value",
      "eps",
    ],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get lrDecay(): number {
    return PythonObject.value(this, "lr_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get initialAccumulatorValue(): number {
    return PythonObject.value(this, "initial_accumulator_value") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  get t(): Tensor {
    return PythonObject.tensor(this, "t");
  }

  set t(value: Tensor) {
    PythonObject.assign(this, "t", value);
  }

  /** A promise: how many there are is known when it has been made. */
  get total(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "total");
  }
}
addPythonNames(Adagrad);

/** Arguments of `nn.optim.AdamW` by name. */
export interface AdamWOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** 0.01 unless given. */ readonly weightDecay?: number | undefined;
  readonly device?: string | null | undefined;
  readonly betas?: readonly number[] | null | undefined;
  /** true unless given. */ readonly decoupled?: boolean | undefined;
}

export type AdamWArguments =
  | [params: readonly Tensor[], options?: AdamWOptions]
  | [params: readonly Tensor[], lr: number, options?: AdamWOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: AdamWOptions];

/**
 * Adam with decoupled weight decay (Loshchilov and Hutter, 2019). `betas`: torch's name for b1 and b2.
 *
 * `decoupled: false`: weight decay is added to the gradient, as torch's Adam does.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.AdamW([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.899, -1.898]
 * ```
 */
export class AdamW extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.AdamW",
    tensors: [{ name: "lr" }, { name: "b1_t" }, { name: "b2_t" }],
    values: ["max_norm", "max_value", "device", "b1", "b2", "eps", "weight_decay", "decoupled"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get b1(): number {
    return PythonObject.value(this, "b1") as number;
  }

  /** In a worker known after `ready()`. */
  get b2(): number {
    return PythonObject.value(this, "b2") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get decoupled(): boolean {
    return PythonObject.value(this, "decoupled") as boolean;
  }

  get b1T(): Tensor {
    return PythonObject.tensor(this, "b1_t");
  }

  set b1T(value: Tensor) {
    PythonObject.assign(this, "b1_t", value);
  }

  get b2T(): Tensor {
    return PythonObject.tensor(this, "b2_t");
  }

  set b2T(value: Tensor) {
    PythonObject.assign(this, "b2_t", value);
  }

  /** A promise: how many there are is known when it has been made. */
  get m(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "m");
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "v");
  }
}
addPythonNames(AdamW);

/** Arguments of `nn.optim.Adamax` by name. */
export interface AdamaxOptions {
  /** 0.002 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  readonly device?: string | null | undefined;
  readonly betas?: readonly number[] | null | undefined;
}

export type AdamaxArguments =
  | [params: readonly Tensor[], options?: AdamaxOptions]
  | [params: readonly Tensor[], lr: number, options?: AdamaxOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: AdamaxOptions];

/**
 * Adam that divides by the greatest past gradient, which decays by b2 (Kingma and Ba, 2015).
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.Adamax([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.9, -1.9]
 * ```
 */
export class Adamax extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Adamax",
    tensors: [{ name: "lr" }, { name: "t" }],
    values: ["max_norm", "max_value", "device", "b1", "b2", "eps", "weight_decay", "decoupled"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get b1(): number {
    return PythonObject.value(this, "b1") as number;
  }

  /** In a worker known after `ready()`. */
  get b2(): number {
    return PythonObject.value(this, "b2") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get decoupled(): boolean {
    return PythonObject.value(this, "decoupled") as boolean;
  }

  get t(): Tensor {
    return PythonObject.tensor(this, "t");
  }

  set t(value: Tensor) {
    PythonObject.assign(this, "t", value);
  }

  /** A promise: how many there are is known when it has been made. */
  get m(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "m");
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "v");
  }
}
addPythonNames(Adamax);

/** Arguments of `nn.optim.ChainedScheduler` by name. */
export interface ChainedSchedulerOptions {
  readonly optimizer?: Optimizer | OptimizerGroup | null | undefined;
}

export type ChainedSchedulerArguments =
  | [schedulers: readonly LRScheduler[], options?: ChainedSchedulerOptions]
  | [
      schedulers: readonly LRScheduler[],
      optimizer: Optimizer | OptimizerGroup | null,
      options?: ChainedSchedulerOptions,
    ];

/**
 * Several schedulers at once, each of which scales the rate: the first rate times all their factors.
 *
 * Step only this one. Throws ArgumentError for a scheduler that is not a pure scaling, for instance with an
 * `etaMin`.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const warmUp = new nn.optim.ConstantLR(optimizer, 0.5, { totalIters: 2 });
 * const decay = new nn.optim.ExponentialLR(optimizer, 0.5);
 * const scheduler = new nn.optim.ChainedScheduler([warmUp, decay]);
 * const rates = [];
 * for (let i = 0; i < 4; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [0.5, 0.25, 0.25, 0.125]
 * ```
 */
export class ChainedScheduler extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.ChainedScheduler",
    tensors: [{ name: "count" }],
    values: [],
  };
}
addPythonNames(ChainedScheduler);

/** Arguments of `nn.optim.ConstantLR` by name. */
export interface ConstantLROptions {
  /** 0.3333333333333333 unless given. */ readonly factor?: number | undefined;
  /** 5 unless given. */ readonly totalIters?: number | undefined;
}

export type ConstantLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, options?: ConstantLROptions]
  | [optimizer: Optimizer | OptimizerGroup, factor: number, options?: ConstantLROptions]
  | [optimizer: Optimizer | OptimizerGroup, factor: number, totalIters: number, options?: ConstantLROptions];

/**
 * The rate times `factor` for the first `totalIters` steps. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.ConstantLR(optimizer, 0.5, { totalIters: 2 });
 * const rates = [];
 * for (let i = 0; i < 4; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [0.5, 0.5, 1, 1]
 * ```
 */
export class ConstantLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.ConstantLR",
    tensors: [{ name: "count" }],
    values: ["factor", "total_iters"],
  };

  /** In a worker known after `ready()`. */
  get factor(): number {
    return PythonObject.value(this, "factor") as number;
  }

  /** In a worker known after `ready()`. */
  get totalIters(): number {
    return PythonObject.value(this, "total_iters") as number;
  }
}
addPythonNames(ConstantLR);

/** Arguments of `nn.optim.CosineAnnealingLR` by name. */
export interface CosineAnnealingLROptions {
  /** 0 unless given. */ readonly etaMin?: number | undefined;
}

export type CosineAnnealingLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, T_max: number, options?: CosineAnnealingLROptions]
  | [
      optimizer: Optimizer | OptimizerGroup,
      T_max: number,
      etaMin: number,
      options?: CosineAnnealingLROptions,
    ];

/**
 * From the first rate to `etaMin` in `T_max` steps, along half a cosine, and back in as many.
 *
 * Loshchilov and Hutter, 2017. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.CosineAnnealingLR(optimizer, 4);
 * const rates = [];
 * for (let i = 0; i < 5; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [1, 0.854, 0.5, 0.146, 0]
 * ```
 */
export class CosineAnnealingLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.CosineAnnealingLR",
    tensors: [{ name: "count" }],
    values: ["T_max", "eta_min"],
  };

  /** In a worker known after `ready()`. */
  get T_max(): number {
    return PythonObject.value(this, "T_max") as number;
  }

  /** In a worker known after `ready()`. */
  get etaMin(): number {
    return PythonObject.value(this, "eta_min") as number;
  }
}
addPythonNames(CosineAnnealingLR);

/** Arguments of `nn.optim.CosineAnnealingWarmRestarts` by name. */
export interface CosineAnnealingWarmRestartsOptions {
  /** 1 unless given. */ readonly T_mult?: number | undefined;
  /** 0 unless given. */ readonly etaMin?: number | undefined;
}

export type CosineAnnealingWarmRestartsArguments =
  | [optimizer: Optimizer | OptimizerGroup, T_0: number, options?: CosineAnnealingWarmRestartsOptions]
  | [
      optimizer: Optimizer | OptimizerGroup,
      T_0: number,
      T_mult: number,
      options?: CosineAnnealingWarmRestartsOptions,
    ]
  | [
      optimizer: Optimizer | OptimizerGroup,
      T_0: number,
      T_mult: number,
      etaMin: number,
      options?: CosineAnnealingWarmRestartsOptions,
    ];

/**
 * From the first rate to `etaMin` along half a cosine in `T_0` steps; then it restarts, with `T_mult`
 * times as many steps each time.
 *
 * Loshchilov and Hutter, 2017. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.CosineAnnealingWarmRestarts(optimizer, 2);
 * const rates = [];
 * for (let i = 0; i < 5; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [1, 0.5, 1, 0.5, 1]
 * ```
 */
export class CosineAnnealingWarmRestarts extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.CosineAnnealingWarmRestarts",
    tensors: [{ name: "count" }],
    values: ["T_0", "T_mult", "eta_min"],
  };

  /** In a worker known after `ready()`. */
  get T_0(): number {
    return PythonObject.value(this, "T_0") as number;
  }

  /** In a worker known after `ready()`. */
  get T_mult(): number {
    return PythonObject.value(this, "T_mult") as number;
  }

  /** In a worker known after `ready()`. */
  get etaMin(): number {
    return PythonObject.value(this, "eta_min") as number;
  }
}
addPythonNames(CosineAnnealingWarmRestarts);

/** Arguments of `nn.optim.CyclicLR` by name. */
export interface CyclicLROptions {
  /** 2000 unless given. */ readonly stepSizeUp?: number | undefined;
  readonly stepSizeDown?: number | null | undefined;
  /** "triangular" unless given. */ readonly mode?: string | undefined;
  /** 1 unless given. */ readonly gamma?: number | undefined;
}

export type CyclicLRArguments =
  | [
      optimizer: Optimizer | OptimizerGroup,
      baseLr: number | readonly number[],
      maxLr: number | readonly number[],
      options?: CyclicLROptions,
    ]
  | [
      optimizer: Optimizer | OptimizerGroup,
      baseLr: number | readonly number[],
      maxLr: number | readonly number[],
      stepSizeUp: number,
      options?: CyclicLROptions,
    ]
  | [
      optimizer: Optimizer | OptimizerGroup,
      baseLr: number | readonly number[],
      maxLr: number | readonly number[],
      stepSizeUp: number,
      stepSizeDown: number | null,
      options?: CyclicLROptions,
    ];

/**
 * The rate cycles between `baseLr` and `maxLr`: it rises in `stepSizeUp` steps and falls in
 * `stepSizeDown`.
 *
 * Smith, 2017. `mode`: 'triangular'; 'triangular2' halves the amplitude in every cycle; 'exp_range'
 * multiplies it by gamma^count. `baseLr`, `maxLr`: for all parameter groups, or one for each. The rate
 * that the optimizer was made with is not used, and momentum does not change. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.CyclicLR(optimizer, 0.1, 0.5, { stepSizeUp: 2 });
 * const rates = [];
 * for (let i = 0; i < 5; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [0.1, 0.3, 0.5, 0.3, 0.1]
 * ```
 */
export class CyclicLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.CyclicLR",
    tensors: [{ name: "count" }],
    values: ["base_lr", "max_lr", "step_size_up", "step_size_down", "mode", "gamma"],
  };

  /** In a worker known after `ready()`. */
  get baseLr(): readonly number[] {
    return PythonObject.value(this, "base_lr") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get maxLr(): readonly number[] {
    return PythonObject.value(this, "max_lr") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get stepSizeUp(): number {
    return PythonObject.value(this, "step_size_up") as number;
  }

  /** In a worker known after `ready()`. */
  get stepSizeDown(): number {
    return PythonObject.value(this, "step_size_down") as number;
  }

  /** In a worker known after `ready()`. */
  get mode(): string {
    return PythonObject.value(this, "mode") as string;
  }

  /** In a worker known after `ready()`. */
  get gamma(): number {
    return PythonObject.value(this, "gamma") as number;
  }
}
addPythonNames(CyclicLR);

export type ExponentialLRArguments = [optimizer: Optimizer | OptimizerGroup, gamma: number];

/**
 * The rate times `gamma` after every step. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.ExponentialLR(optimizer, 0.5);
 * const rates = [];
 * for (let i = 0; i < 4; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [1, 0.5, 0.25, 0.125]
 * ```
 */
export class ExponentialLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.ExponentialLR",
    tensors: [{ name: "count" }],
    values: ["gamma"],
  };

  /** In a worker known after `ready()`. */
  get gamma(): number {
    return PythonObject.value(this, "gamma") as number;
  }
}
addPythonNames(ExponentialLR);

/** Arguments of `nn.optim.LinearLR` by name. */
export interface LinearLROptions {
  /** 0.3333333333333333 unless given. */ readonly startFactor?: number | undefined;
  /** 1 unless given. */ readonly endFactor?: number | undefined;
  /** 5 unless given. */ readonly totalIters?: number | undefined;
}

export type LinearLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, options?: LinearLROptions]
  | [optimizer: Optimizer | OptimizerGroup, startFactor: number, options?: LinearLROptions]
  | [
      optimizer: Optimizer | OptimizerGroup,
      startFactor: number,
      endFactor: number,
      options?: LinearLROptions,
    ];

/**
 * The rate times a factor that changes linearly from `startFactor` to `endFactor` in `totalIters`
 * steps, and then stays constant.
 *
 * The defaults are a warm-up; a falling factor is a decay. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.LinearLR(optimizer, 0.25, { totalIters: 3 });
 * const rates = [];
 * for (let i = 0; i < 4; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [0.25, 0.5, 0.75, 1]
 * ```
 */
export class LinearLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.LinearLR",
    tensors: [{ name: "count" }],
    values: ["start_factor", "end_factor", "total_iters"],
  };

  /** In a worker known after `ready()`. */
  get startFactor(): number {
    return PythonObject.value(this, "start_factor") as number;
  }

  /** In a worker known after `ready()`. */
  get endFactor(): number {
    return PythonObject.value(this, "end_factor") as number;
  }

  /** In a worker known after `ready()`. */
  get totalIters(): number {
    return PythonObject.value(this, "total_iters") as number;
  }
}
addPythonNames(LinearLR);

/** Arguments of `nn.optim.MultiStepLR` by name. */
export interface MultiStepLROptions {
  /** 0.1 unless given. */ readonly gamma?: number | undefined;
}

export type MultiStepLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, milestones: readonly number[], options?: MultiStepLROptions]
  | [
      optimizer: Optimizer | OptimizerGroup,
      milestones: readonly number[],
      gamma: number,
      options?: MultiStepLROptions,
    ];

/**
 * The rate times `gamma` at each of the counts `milestones`. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.MultiStepLR(optimizer, [1, 3]);
 * const rates = [];
 * for (let i = 0; i < 4; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [1, 0.1, 0.1, 0.01]
 * ```
 */
export class MultiStepLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.MultiStepLR",
    tensors: [{ name: "count" }],
    values: ["milestones", "gamma"],
  };

  /** In a worker known after `ready()`. */
  get milestones(): readonly number[] {
    return PythonObject.value(this, "milestones") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get gamma(): number {
    return PythonObject.value(this, "gamma") as number;
  }
}
addPythonNames(MultiStepLR);

/** Arguments of `nn.optim.Muon` by name. */
export interface MuonOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.95 unless given. */ readonly momentum?: number | undefined;
  /** 0.1 unless given. */ readonly weightDecay?: number | undefined;
  /** 5 unless given. */ readonly nsSteps?: number | undefined;
  /** [3.4445,-4.775,2.0315] unless given. */ readonly nsCoefficients?: readonly number[] | undefined;
  /** true unless given. */ readonly nesterov?: boolean | undefined;
  readonly adjustLrFn?: "original" | "match_rms_adamw" | null | undefined;
  readonly device?: string | null | undefined;
}

export type MuonArguments =
  | [params: readonly Tensor[], options?: MuonOptions]
  | [params: readonly Tensor[], lr: number, options?: MuonOptions]
  | [params: readonly Tensor[], lr: number, momentum: number, options?: MuonOptions];

/**
 * Momentum whose matrices are approximately orthogonalized before they are subtracted (Jordan, 2024).
 *
 * For the hidden matrices of a network; a parameter with more axes is a matrix of its first axis by all
 * others. Orthogonalization takes `nsSteps` of the Newton-Schulz iteration with the odd polynomial of
 * `nsCoefficients`. Weight decay is decoupled. `adjustLrFn`: how the learning rate grows with the shape
 * (rows, columns), as in torch: 'original', by sqrt(max(1, rows / columns)), 'match_rms_adamw', by 0.2 *
 * sqrt(max(rows, columns)), or null, not at all.
 *
 * ```js
 * const w = Tensor.eye(2).requiresGrad_();
 * const optimizer = new nn.optim.Muon([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * (await w.ready()).shape; // [2, 2]
 * ```
 */
export class Muon extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Muon",
    tensors: [{ name: "lr" }],
    values: [
      "max_norm",
      "max_value",
      "device",
      "momentum",
      "weight_decay",
      "nesterov",
      "ns_steps",
      "ns_coefficients",
      "adjust_lr_fn",
    ],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return PythonObject.value(this, "momentum") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get nesterov(): boolean {
    return PythonObject.value(this, "nesterov") as boolean;
  }

  /** In a worker known after `ready()`. */
  get nsSteps(): number {
    return PythonObject.value(this, "ns_steps") as number;
  }

  /** In a worker known after `ready()`. */
  get nsCoefficients(): readonly number[] {
    return PythonObject.value(this, "ns_coefficients") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get adjustLrFn(): string | null {
    return PythonObject.value(this, "adjust_lr_fn") as string | null;
  }

  /** A promise: how many there are is known when it has been made. */
  get b(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "b");
  }
}
addPythonNames(Muon);

/** Arguments of `nn.optim.NAdam` by name. */
export interface NAdamOptions {
  /** 0.002 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  /** 0.004 unless given. */ readonly momentumDecay?: number | undefined;
  /** false unless given. */ readonly decoupled?: boolean | undefined;
  readonly device?: string | null | undefined;
  readonly betas?: readonly number[] | null | undefined;
}

export type NAdamArguments =
  | [params: readonly Tensor[], options?: NAdamOptions]
  | [params: readonly Tensor[], lr: number, options?: NAdamOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: NAdamOptions];

/**
 * Adam with Nesterov's momentum, whose decay grows to b1 by `momentumDecay` (Dozat, 2016).
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.NAdam([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.8944, -1.8944]
 * ```
 */
export class NAdam extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.NAdam",
    tensors: [{ name: "lr" }, { name: "t" }, { name: "mu_product" }],
    values: [
      "max_norm",
      "max_value",
      "device",
      "b1",
      "b2",
      "eps",
      "weight_decay",
      "decoupled",
      "momentum_decay",
    ],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get b1(): number {
    return PythonObject.value(this, "b1") as number;
  }

  /** In a worker known after `ready()`. */
  get b2(): number {
    return PythonObject.value(this, "b2") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get decoupled(): boolean {
    return PythonObject.value(this, "decoupled") as boolean;
  }

  get t(): Tensor {
    return PythonObject.tensor(this, "t");
  }

  set t(value: Tensor) {
    PythonObject.assign(this, "t", value);
  }

  /** A promise: how many there are is known when it has been made. */
  get m(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "m");
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "v");
  }

  /** In a worker known after `ready()`. */
  get momentumDecay(): number {
    return PythonObject.value(this, "momentum_decay") as number;
  }

  get muProduct(): Tensor {
    return PythonObject.tensor(this, "mu_product");
  }

  set muProduct(value: Tensor) {
    PythonObject.assign(this, "mu_product", value);
  }
}
addPythonNames(NAdam);

/** Arguments of `nn.optim.OneCycleLR` by name. */
export interface OneCycleLROptions {
  readonly totalSteps?: number | null | undefined;
  /** 0.3 unless given. */ readonly pctStart?: number | undefined;
  /** "cos" unless given. */ readonly annealStrategy?: "cos" | "linear" | undefined;
  /** 25 unless given. */ readonly divFactor?: number | undefined;
  /** 10000 unless given. */ readonly finalDivFactor?: number | undefined;
  /** false unless given. */ readonly threePhase?: boolean | undefined;
  readonly epochs?: number | null | undefined;
  readonly stepsPerEpoch?: number | null | undefined;
}

export type OneCycleLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, maxLr: number | readonly number[], options?: OneCycleLROptions]
  | [
      optimizer: Optimizer | OptimizerGroup,
      maxLr: number | readonly number[],
      totalSteps: number | null,
      options?: OneCycleLROptions,
    ]
  | [
      optimizer: Optimizer | OptimizerGroup,
      maxLr: number | readonly number[],
      totalSteps: number | null,
      pctStart: number,
      options?: OneCycleLROptions,
    ];

/**
 * The rate rises to `maxLr` in the first `pctStart` of `totalSteps` steps, and then falls to almost 0.
 *
 * Smith and Topin, 2018. The rate starts at maxLr / divFactor and ends at that / finalDivFactor. The
 * rate that the optimizer was made with is not used, and momentum does not change. `threePhase`: fall as
 * fast as the rise, then to the final rate. `annealStrategy`: 'cos' or 'linear'. `maxLr`: for all
 * parameter groups, or one for each. The number of steps may be given as `epochs` times `stepsPerEpoch`.
 * Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.OneCycleLR(optimizer, 1, { totalSteps: 5 });
 * const rates = [];
 * for (let i = 0; i < 5; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [0.04, 0.95, 0.611, 0.188, 0]
 * ```
 */
export class OneCycleLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.OneCycleLR",
    tensors: [{ name: "count" }],
    values: [
      "max_lr",
      "total_steps",
      "pct_start",
      "anneal_strategy",
      "div_factor",
      "final_div_factor",
      "three_phase",
    ],
  };

  /** In a worker known after `ready()`. */
  get maxLr(): readonly number[] {
    return PythonObject.value(this, "max_lr") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get totalSteps(): number {
    return PythonObject.value(this, "total_steps") as number;
  }

  /** In a worker known after `ready()`. */
  get pctStart(): number {
    return PythonObject.value(this, "pct_start") as number;
  }

  /** In a worker known after `ready()`. */
  get annealStrategy(): string {
    return PythonObject.value(this, "anneal_strategy") as string;
  }

  /** In a worker known after `ready()`. */
  get divFactor(): number {
    return PythonObject.value(this, "div_factor") as number;
  }

  /** In a worker known after `ready()`. */
  get finalDivFactor(): number {
    return PythonObject.value(this, "final_div_factor") as number;
  }

  /** In a worker known after `ready()`. */
  get threePhase(): boolean {
    return PythonObject.value(this, "three_phase") as boolean;
  }
}
addPythonNames(OneCycleLR);

/** Arguments of `nn.optim.PolynomialLR` by name. */
export interface PolynomialLROptions {
  /** 5 unless given. */ readonly totalIters?: number | undefined;
  /** 1 unless given. */ readonly power?: number | undefined;
}

export type PolynomialLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, options?: PolynomialLROptions]
  | [optimizer: Optimizer | OptimizerGroup, totalIters: number, options?: PolynomialLROptions]
  | [optimizer: Optimizer | OptimizerGroup, totalIters: number, power: number, options?: PolynomialLROptions];

/**
 * The rate times (1 - count / totalIters)^power, down to 0, where it stays. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.PolynomialLR(optimizer, 4);
 * const rates = [];
 * for (let i = 0; i < 5; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [1, 0.75, 0.5, 0.25, 0]
 * ```
 */
export class PolynomialLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.PolynomialLR",
    tensors: [{ name: "count" }],
    values: ["total_iters", "power"],
  };

  /** In a worker known after `ready()`. */
  get totalIters(): number {
    return PythonObject.value(this, "total_iters") as number;
  }

  /** In a worker known after `ready()`. */
  get power(): number {
    return PythonObject.value(this, "power") as number;
  }
}
addPythonNames(PolynomialLR);

/** Arguments of `nn.optim.RAdam` by name. */
export interface RAdamOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  /** false unless given. */ readonly decoupled?: boolean | undefined;
  readonly device?: string | null | undefined;
  readonly betas?: readonly number[] | null | undefined;
}

export type RAdamArguments =
  | [params: readonly Tensor[], options?: RAdamOptions]
  | [params: readonly Tensor[], lr: number, options?: RAdamOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: RAdamOptions];

/**
 * Adam that rectifies the variance of its adaptive learning rate in early steps (Liu et al., 2020).
 *
 * The first steps (five, with the usual b2) use momentum alone.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.RAdam([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.8, -1.6]
 * ```
 */
export class RAdam extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.RAdam",
    tensors: [{ name: "lr" }, { name: "t" }],
    values: ["max_norm", "max_value", "device", "b1", "b2", "eps", "weight_decay", "decoupled"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get b1(): number {
    return PythonObject.value(this, "b1") as number;
  }

  /** In a worker known after `ready()`. */
  get b2(): number {
    return PythonObject.value(this, "b2") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get decoupled(): boolean {
    return PythonObject.value(this, "decoupled") as boolean;
  }

  get t(): Tensor {
    return PythonObject.tensor(this, "t");
  }

  set t(value: Tensor) {
    PythonObject.assign(this, "t", value);
  }

  /** A promise: how many there are is known when it has been made. */
  get m(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "m");
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "v");
  }
}
addPythonNames(RAdam);

/** Arguments of `nn.optim.RMSprop` by name. */
export interface RMSpropOptions {
  /** 0.01 unless given. */ readonly lr?: number | undefined;
  /** 0.99 unless given. */ readonly alpha?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  /** 0 unless given. */ readonly momentum?: number | undefined;
  /** false unless given. */ readonly centered?: boolean | undefined;
  readonly device?: string | null | undefined;
}

export type RMSpropArguments =
  | [params: readonly Tensor[], options?: RMSpropOptions]
  | [params: readonly Tensor[], lr: number, options?: RMSpropOptions]
  | [params: readonly Tensor[], lr: number, alpha: number, options?: RMSpropOptions];

/**
 * Gradients divided by the root of a running mean of their squares (Tieleman and Hinton, 2012).
 *
 * `alpha`: the decay of that mean. `centered`: divide by the standard deviation. As torch.optim.RMSprop.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.RMSprop([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0, -1]
 * ```
 */
export class RMSprop extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.RMSprop",
    tensors: [{ name: "lr" }],
    values: ["max_norm", "max_value", "device", "alpha", "eps", "weight_decay", "momentum", "centered"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get alpha(): number {
    return PythonObject.value(this, "alpha") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return PythonObject.value(this, "weight_decay") as number;
  }

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return PythonObject.value(this, "momentum") as number;
  }

  /** In a worker known after `ready()`. */
  get centered(): boolean {
    return PythonObject.value(this, "centered") as boolean;
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "v");
  }

  /** A promise: how many there are is known when it has been made. */
  get b(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "b");
  }

  /** A promise: how many there are is known when it has been made. */
  get mean(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "mean");
  }
}
addPythonNames(RMSprop);

/** Arguments of `nn.optim.ReduceLROnPlateau` by name. */
export interface ReduceLROnPlateauOptions {
  /** "min" unless given. */ readonly mode?: string | undefined;
  /** 0.1 unless given. */ readonly factor?: number | undefined;
  /** 10 unless given. */ readonly patience?: number | undefined;
  /** 0.0001 unless given. */ readonly threshold?: number | undefined;
  /** "rel" unless given. */ readonly thresholdMode?: string | undefined;
  /** 0 unless given. */ readonly cooldown?: number | undefined;
  /** 0 unless given. */ readonly minLr?: number | readonly number[] | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
}

export type ReduceLROnPlateauArguments =
  | [optimizer: Optimizer | OptimizerGroup, options?: ReduceLROnPlateauOptions]
  | [optimizer: Optimizer | OptimizerGroup, mode: string, options?: ReduceLROnPlateauOptions]
  | [optimizer: Optimizer | OptimizerGroup, mode: string, factor: number, options?: ReduceLROnPlateauOptions];

/**
 * Multiply the rates by `factor` when a metric has not improved for more than `patience` steps.
 *
 *     scheduler.step(validationLoss);
 *
 * `mode`: whether lower ('min') or higher ('max') is better. An improvement must exceed `threshold`,
 * relative to the best so far ('rel') or absolute ('abs'). After a reduction, `cooldown` steps do not count.
 * Rates do not fall below `minLr` (or one for each group), and changes of less than `eps` are skipped.
 * Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.ReduceLROnPlateau(optimizer, { patience: 1 });
 * for (const loss of [0.5, 0.6, 0.6, 0.6]) {
 *   scheduler.step(loss);
 * }
 * await optimizer.lr.item(); // ≈ 0.1
 * ```
 */
export class ReduceLROnPlateau extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.ReduceLROnPlateau",
    tensors: [{ name: "count" }],
    values: [
      "mode",
      "factor",
      "patience",
      "threshold",
      "threshold_mode",
      "cooldown",
      "eps",
      "min_lr",
      "best",
      "num_bad_epochs",
      "cooldown_counter",
    ],
  };

  /** In a worker known after `ready()`. */
  get mode(): string {
    return PythonObject.value(this, "mode") as string;
  }

  /** In a worker known after `ready()`. */
  get factor(): number {
    return PythonObject.value(this, "factor") as number;
  }

  /** In a worker known after `ready()`. */
  get patience(): number {
    return PythonObject.value(this, "patience") as number;
  }

  /** In a worker known after `ready()`. */
  get threshold(): number {
    return PythonObject.value(this, "threshold") as number;
  }

  /** In a worker known after `ready()`. */
  get thresholdMode(): string {
    return PythonObject.value(this, "threshold_mode") as string;
  }

  /** In a worker known after `ready()`. */
  get cooldown(): number {
    return PythonObject.value(this, "cooldown") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return PythonObject.value(this, "eps") as number;
  }

  /** In a worker known after `ready()`. */
  get minLr(): readonly number[] {
    return PythonObject.value(this, "min_lr") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get best(): number {
    return PythonObject.value(this, "best") as number;
  }

  /** In a worker known after `ready()`. */
  get numBadEpochs(): number {
    return PythonObject.value(this, "num_bad_epochs") as number;
  }

  /** In a worker known after `ready()`. */
  get cooldownCounter(): number {
    return PythonObject.value(this, "cooldown_counter") as number;
  }

  /** Count one step with the number `metrics` (or a Tensor of one element). Throws ArgumentError. */
  override step(
    ...args:
      | [options?: ReduceLROnPlateauStepOptions]
      | [metrics: number | Tensor | null, options?: ReduceLROnPlateauStepOptions]
  ): void {
    callVoid(this[owner], "nn.optim.ReduceLROnPlateau.step", [this, ...args]);
  }

  /** The scheduler's own state. The rates belong to the optimizer. */
  override stateDict(): Promise<StateDict> {
    return callStateDict(this[owner], "nn.optim.ReduceLROnPlateau.state_dict", [this]);
  }

  /** Restore the state that `stateDict` returned. Throws ArgumentError, ShapeError. */
  override loadStateDict(stateDict: Readonly<Record<string, Tensor>>): void {
    callVoid(this[owner], "nn.optim.ReduceLROnPlateau.load_state_dict", [this, stateDict, {}]);
  }
}
addPythonNames(ReduceLROnPlateau);
/** Arguments of `nn.optim.ReduceLROnPlateau.step` by name. */
export interface ReduceLROnPlateauStepOptions {
  readonly metrics?: number | Tensor | null | undefined;
}

/** Arguments of `nn.optim.Rprop` by name. */
export interface RpropOptions {
  /** 0.01 unless given. */ readonly lr?: number | undefined;
  /** [0.5,1.2] unless given. */ readonly etas?: readonly number[] | undefined;
  /** [0.000001,50] unless given. */ readonly stepSizes?: readonly number[] | undefined;
  readonly device?: string | null | undefined;
}

export type RpropArguments =
  | [params: readonly Tensor[], options?: RpropOptions]
  | [params: readonly Tensor[], lr: number, options?: RpropOptions]
  | [params: readonly Tensor[], lr: number, etas: readonly number[], options?: RpropOptions];

/**
 * Steps by the gradient's sign, whose size adapts for each element (Riedmiller and Braun, 1993).
 *
 * `etas`: the factors of a step size when the sign changed (that step is skipped, too) and when it did not.
 * `stepSizes`: the least and the greatest step size; `lr` is the first one. Meant for full batches.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.Rprop([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.9, -1.9]
 * ```
 */
export class Rprop extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Rprop",
    tensors: [{ name: "lr" }],
    values: ["max_norm", "max_value", "device", "etas", "step_sizes"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get etas(): readonly number[] {
    return PythonObject.value(this, "etas") as readonly number[];
  }

  /** In a worker known after `ready()`. */
  get stepSizes(): readonly number[] {
    return PythonObject.value(this, "step_sizes") as readonly number[];
  }

  /** A promise: how many there are is known when it has been made. */
  get before(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "before");
  }

  /** A promise: how many there are is known when it has been made. */
  get size(): Promise<Tensor[]> {
    return PythonObject.tensors(this, "size");
  }
}
addPythonNames(Rprop);

export type SequentialLRArguments = [
  optimizer: Optimizer | OptimizerGroup,
  schedulers: readonly LRScheduler[],
  milestones: readonly number[],
];

/**
 * Schedulers in sequence: each of `milestones` is the count at which the next one starts from 0.
 *
 *     const warmUp = new LinearLR(optimizer, 0.1, { totalIters: 100 });
 *     const cosine = new CosineAnnealingLR(optimizer, 900);
 *     const scheduler = new SequentialLR(optimizer, [warmUp, cosine], [100]);
 *
 * Step only this one. Throws ArgumentError unless there is one milestone less than schedulers, in order.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const warmUp = new nn.optim.LinearLR(optimizer, 0.5, { totalIters: 2 });
 * const decay = new nn.optim.ExponentialLR(optimizer, 0.5);
 * const scheduler = new nn.optim.SequentialLR(optimizer, [warmUp, decay], [2]);
 * const rates = [];
 * for (let i = 0; i < 5; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [0.5, 0.75, 1, 0.5, 0.25]
 * ```
 */
export class SequentialLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.SequentialLR",
    tensors: [{ name: "count" }],
    values: ["milestones"],
  };

  /** In a worker known after `ready()`. */
  get milestones(): readonly number[] {
    return PythonObject.value(this, "milestones") as readonly number[];
  }
}
addPythonNames(SequentialLR);

/** Arguments of `nn.optim.StepLR` by name. */
export interface StepLROptions {
  /** 0.1 unless given. */ readonly gamma?: number | undefined;
}

export type StepLRArguments =
  | [optimizer: Optimizer | OptimizerGroup, stepSize: number, options?: StepLROptions]
  | [optimizer: Optimizer | OptimizerGroup, stepSize: number, gamma: number, options?: StepLROptions];

/**
 * The rate times `gamma` after every `stepSize` steps. Throws ArgumentError.
 *
 * ```js
 * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
 * const scheduler = new nn.optim.StepLR(optimizer, 2);
 * const rates = [];
 * for (let i = 0; i < 4; i++) {
 *   rates.push(await optimizer.lr.item());
 *   scheduler.step();
 * }
 * rates; // ≈ [1, 1, 0.1, 0.1]
 * ```
 */
export class StepLR extends LRScheduler {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.StepLR",
    tensors: [{ name: "count" }],
    values: ["step_size", "gamma"],
  };

  /** In a worker known after `ready()`. */
  get stepSize(): number {
    return PythonObject.value(this, "step_size") as number;
  }

  /** In a worker known after `ready()`. */
  get gamma(): number {
    return PythonObject.value(this, "gamma") as number;
  }
}
addPythonNames(StepLR);

/** Arguments of `nn.optim.LAMB` by name. */
export interface LAMBOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  /** false unless given. */ readonly adam?: boolean | undefined;
  readonly device?: string | null | undefined;
  readonly betas?: readonly number[] | null | undefined;
}

export type LAMBArguments =
  | [params: readonly Tensor[], options?: LAMBOptions]
  | [params: readonly Tensor[], lr: number, options?: LAMBOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: LAMBOptions];

/**
 * Adam whose steps are scaled for each parameter, by |p| / |step| (You et al., 2020).
 *
 * The scale is 1 where a norm is 0, and everywhere with `adam`.
 *
 * ```js
 * const w = new Tensor([1, -2], { requiresGrad: true });
 * const optimizer = new nn.optim.LAMB([w], { lr: 0.1 });
 * Tensor.train(() => {
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * });
 * await w.tolist(); // ≈ [0.8419, -1.8419]
 * ```
 */
export class LAMB extends AdamW {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.LAMB",
    tensors: [{ name: "lr" }, { name: "b1_t" }, { name: "b2_t" }],
    values: ["max_norm", "max_value", "device", "b1", "b2", "eps", "weight_decay", "decoupled", "adam"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get adam(): boolean {
    return PythonObject.value(this, "adam") as boolean;
  }
}
addPythonNames(LAMB);

/** Arguments of `nn.optim.Adam` by name. */
export interface AdamOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  readonly device?: string | null | undefined;
  /** 0 unless given. */ readonly weightDecay?: number | undefined;
  readonly betas?: readonly number[] | null | undefined;
}

export type AdamArguments =
  | [params: readonly Tensor[], options?: AdamOptions]
  | [params: readonly Tensor[], lr: number, options?: AdamOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: AdamOptions];

/** Adam (Kingma and Ba, 2015): AdamW whose weight decay, if any, is added to the gradient. */
export class Adam extends AdamW {
  /** @internal */
  static override readonly shape: Shape = { ...AdamW.shape, id: "nn.optim.Adam" };
}

/** Arguments of `nn.optim.clipGradNorm_` by name. */
export interface ClipGradNormOptions {
  /** 2 unless given. */ readonly normType?: number | undefined;
  /** false unless given. */ readonly errorIfNonfinite?: boolean | undefined;
}

export interface OptimizerFunctions {
  /**
   * Scale the gradients of `params` so that their joint norm is at most `maxNorm`. Returns the norm before
   * scaling, a float32 Tensor of shape ().
   *
   * Lazy, unless `errorIfNonfinite`: throws GradientError for a norm that is infinite or NaN. `normType`: p
   * of the p-norm, or infinity for the greatest magnitude. Parameters without a gradient do not count. Throws
   * ArgumentError for a negative maxNorm, or a normType of 0 or less.
   *
   * ```js
   * const w = new Tensor([3, 4], { requiresGrad: true });
   * w.mul(w).sum().backward();
   * await nn.optim.clipGradNorm_([w], 1).item(); // ≈ 10
   * await w.grad.tolist(); // ≈ [0.6, 0.8]
   * ```
   */
  clipGradNorm_(
    ...args:
      | [params: Tensor | readonly Tensor[], maxNorm: number, options?: ClipGradNormOptions]
      | [params: Tensor | readonly Tensor[], maxNorm: number, normType: number, options?: ClipGradNormOptions]
  ): Tensor;
  /**
   * Clamp the elements of the gradients of `params` to ±clipValue. Throws ArgumentError if it is
   * negative.
   *
   * ```js
   * const w = new Tensor([3, 4], { requiresGrad: true });
   * w.mul(w).sum().backward();
   * nn.optim.clipGradValue_([w], 7);
   * await w.grad.tolist(); // [6, 7]
   * ```
   */
  clipGradValue_(params: Tensor | readonly Tensor[], clipValue: number): void;
}

/** @internal */
export function optimizerFunctions(session: Session): OptimizerFunctions {
  return {
    clipGradNorm_(
      ...args:
        | [params: Tensor | readonly Tensor[], maxNorm: number, options?: ClipGradNormOptions]
        | [
            params: Tensor | readonly Tensor[],
            maxNorm: number,
            normType: number,
            options?: ClipGradNormOptions,
          ]
    ): Tensor {
      return callTensor(session, "nn.optim.clip_grad_norm_", [...args]);
    },
    clipGradValue_(params: Tensor | readonly Tensor[], clipValue: number): void {
      callVoid(session, "nn.optim.clip_grad_value_", [params, clipValue]);
    },
  };
}

/** Arguments of `nn.init.calculateGain` by name. */
export interface CalculateGainOptions {
  readonly param?: number | null | undefined;
}

/** Arguments of `nn.init.dirac_` by name. */
export interface DiracOptions {
  /** 1 unless given. */ readonly groups?: number | undefined;
}

/** Arguments of `nn.init.kaimingNormal_` by name. */
export interface KaimingNormalOptions {
  /** 0 unless given. */ readonly a?: number | undefined;
  /** "fan_in" unless given. */ readonly mode?: "fan_in" | "fan_out" | undefined;
  /** "leaky_relu" unless given. */ readonly nonlinearity?: string | undefined;
}

/** Arguments of `nn.init.kaimingUniform_` by name. */
export interface KaimingUniformOptions {
  /** 0 unless given. */ readonly a?: number | undefined;
  /** "fan_in" unless given. */ readonly mode?: "fan_in" | "fan_out" | undefined;
  /** "leaky_relu" unless given. */ readonly nonlinearity?: string | undefined;
}

/** Arguments of `nn.init.normal_` by name. */
export interface NormalOptions {
  /** 0 unless given. */ readonly mean?: number | undefined;
  /** 1 unless given. */ readonly std?: number | undefined;
}

/** Arguments of `nn.init.orthogonal_` by name. */
export interface OrthogonalOptions {
  /** 1 unless given. */ readonly gain?: number | undefined;
}

/** Arguments of `nn.init.sparse_` by name. */
export interface SparseOptions {
  /** 0.01 unless given. */ readonly std?: number | undefined;
}

/** Arguments of `nn.init.truncNormal_` by name. */
export interface TruncNormalOptions {
  /** 0 unless given. */ readonly mean?: number | undefined;
  /** 1 unless given. */ readonly std?: number | undefined;
  /** -2 unless given. */ readonly a?: number | undefined;
  /** 2 unless given. */ readonly b?: number | undefined;
}

/** Arguments of `nn.init.uniform_` by name. */
export interface UniformOptions {
  /** 0 unless given. */ readonly a?: number | undefined;
  /** 1 unless given. */ readonly b?: number | undefined;
}

/** Arguments of `nn.init.xavierNormal_` by name. */
export interface XavierNormalOptions {
  /** 1 unless given. */ readonly gain?: number | undefined;
}

/** Arguments of `nn.init.xavierUniform_` by name. */
export interface XavierUniformOptions {
  /** 1 unless given. */ readonly gain?: number | undefined;
}

export interface Initialisation {
  /**
   * The factor for the standard deviation of weights before `nonlinearity`.
   *
   * 'linear', 'conv1d', ..., 'sigmoid', 'tanh', 'relu', 'selu', or 'leaky_relu', whose slope below 0 is
   * `param` (0.01 unless given). Throws ArgumentError.
   *
   * ```js
   * await nn.init.calculateGain("relu"); // ≈ 1.4142
   * ```
   */
  calculateGain(
    ...args:
      | [nonlinearity: string, options?: CalculateGainOptions]
      | [nonlinearity: string, param: number | null, options?: CalculateGainOptions]
  ): Promise<number>;
  /**
   * `val` everywhere.
   *
   * ```js
   * await nn.init.constant_(Tensor.zeros(2), 3).tolist(); // [3, 3]
   * ```
   */
  constant_(tensor: Tensor, val: number): Tensor;
  /**
   * The identity as a convolution's weight (out, in, *kernel), in each of `groups`.
   *
   * Throws ShapeError for other than 1 to 3 axes of a kernel, or outputs that `groups` do not divide.
   *
   * ```js
   * await nn.init.dirac_(Tensor.zeros(1, 1, 3)).tolist(); // [[[0, 1, 0]]]
   * ```
   */
  dirac_(
    ...args:
      [tensor: Tensor, options?: DiracOptions] | [tensor: Tensor, groups: number, options?: DiracOptions]
  ): Tensor;
  /**
   * 1 on the diagonal of a matrix, 0 elsewhere. Throws ShapeError.
   *
   * ```js
   * await nn.init.eye_(Tensor.zeros(2, 2)).tolist(); // [[1, 0], [0, 1]]
   * ```
   */
  eye_(tensor: Tensor): Tensor;
  /**
   * Normal with deviation gain / sqrt(fan); arguments as for `kaimingUniform_`.
   *
   * ```js
   * (await nn.init.kaimingNormal_(Tensor.zeros(2, 6)).ready()).shape; // [2, 6]
   * ```
   */
  kaimingNormal_(
    ...args:
      | [tensor: Tensor, options?: KaimingNormalOptions]
      | [tensor: Tensor, a: number, options?: KaimingNormalOptions]
      | [tensor: Tensor, a: number, mode: "fan_in" | "fan_out", options?: KaimingNormalOptions]
  ): Tensor;
  /**
   * Uniform in ±gain * sqrt(3 / fan) (He et al., 2015).
   *
   * `mode`: 'fan_in' keeps the variance on the way forward, 'fan_out' that of gradients. `nonlinearity`, and
   * `a` for the leaky one, as in `calculateGain`. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await nn.init.kaimingUniform_(Tensor.zeros(2, 6)).abs().le(1).all().item(); // true
   * ```
   */
  kaimingUniform_(
    ...args:
      | [tensor: Tensor, options?: KaimingUniformOptions]
      | [tensor: Tensor, a: number, options?: KaimingUniformOptions]
      | [tensor: Tensor, a: number, mode: "fan_in" | "fan_out", options?: KaimingUniformOptions]
  ): Tensor;
  /**
   * Normal with that mean and standard deviation. Throws ArgumentError for a negative one, DTypeError.
   *
   * ```js
   * await nn.init.normal_(Tensor.zeros(2), 3, 0).tolist(); // [3, 3]
   * ```
   */
  normal_(
    ...args:
      | [tensor: Tensor, options?: NormalOptions]
      | [tensor: Tensor, mean: number, options?: NormalOptions]
      | [tensor: Tensor, mean: number, std: number, options?: NormalOptions]
  ): Tensor;
  /**
   * 1 everywhere.
   *
   * ```js
   * await nn.init.ones_(Tensor.zeros(2)).tolist(); // [1, 1]
   * ```
   */
  ones_(tensor: Tensor): Tensor;
  /**
   * A matrix, the first axis by all others, with orthonormal rows (or columns, if these are fewer), times
   * `gain` (Saxe et al., 2013). Throws ShapeError.
   *
   * By 30 steps of the Newton-Schulz iteration from random numbers, in float32.
   *
   * ```js
   * const w = nn.init.orthogonal_(Tensor.zeros(2, 3));
   * await w.matmul(w.T).round().abs().tolist(); // [[1, 0], [0, 1]]
   * ```
   */
  orthogonal_(
    ...args:
      | [tensor: Tensor, options?: OrthogonalOptions]
      | [tensor: Tensor, gain: number, options?: OrthogonalOptions]
  ): Tensor;
  /**
   * Normal with standard deviation `std`; a fraction `sparsity` of each column is 0 (Martens, 2010).
   *
   * Throws ShapeError unless it is a matrix, ArgumentError, DTypeError.
   *
   * ```js
   * await nn.init.sparse_(Tensor.zeros(4, 2), 0.5).eq(0).sum(0).tolist(); // [2, 2]
   * ```
   */
  sparse_(
    ...args:
      | [tensor: Tensor, sparsity: number, options?: SparseOptions]
      | [tensor: Tensor, sparsity: number, std: number, options?: SparseOptions]
  ): Tensor;
  /**
   * Normal, truncated to [a, b]: by the inverse of the distribution function.
   *
   * Throws ArgumentError for a >= b or std <= 0, DTypeError.
   *
   * ```js
   * await nn.init.truncNormal_(Tensor.zeros(2), { a: -0.5, b: 0.5 }).abs().le(0.5).tolist(); // [true, true]
   * ```
   */
  truncNormal_(
    ...args:
      | [tensor: Tensor, options?: TruncNormalOptions]
      | [tensor: Tensor, mean: number, options?: TruncNormalOptions]
      | [tensor: Tensor, mean: number, std: number, options?: TruncNormalOptions]
  ): Tensor;
  /**
   * Uniform in [a, b). Throws ArgumentError for a > b, DTypeError unless it is of floats.
   *
   * ```js
   * await nn.init.uniform_(Tensor.zeros(2), 2, 4).ge(2).tolist(); // [true, true]
   * ```
   */
  uniform_(
    ...args:
      | [tensor: Tensor, options?: UniformOptions]
      | [tensor: Tensor, a: number, options?: UniformOptions]
      | [tensor: Tensor, a: number, b: number, options?: UniformOptions]
  ): Tensor;
  /**
   * Normal with deviation gain * sqrt(2 / (fan in + fan out)). Throws ShapeError.
   *
   * ```js
   * (await nn.init.xavierNormal_(Tensor.zeros(2, 4)).ready()).shape; // [2, 4]
   * ```
   */
  xavierNormal_(
    ...args:
      | [tensor: Tensor, options?: XavierNormalOptions]
      | [tensor: Tensor, gain: number, options?: XavierNormalOptions]
  ): Tensor;
  /**
   * Uniform in ±gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010). Throws ShapeError.
   *
   * ```js
   * await nn.init.xavierUniform_(Tensor.zeros(2, 4)).abs().le(1).all().item(); // true
   * ```
   */
  xavierUniform_(
    ...args:
      | [tensor: Tensor, options?: XavierUniformOptions]
      | [tensor: Tensor, gain: number, options?: XavierUniformOptions]
  ): Tensor;
  /**
   * 0 everywhere.
   *
   * ```js
   * await nn.init.zeros_(Tensor.ones(2)).tolist(); // [0, 0]
   * ```
   */
  zeros_(tensor: Tensor): Tensor;
}

/** @internal */
export function initialisation(session: Session): Initialisation {
  return {
    calculateGain(
      ...args:
        | [nonlinearity: string, options?: CalculateGainOptions]
        | [nonlinearity: string, param: number | null, options?: CalculateGainOptions]
    ): Promise<number> {
      return callValue(session, "nn.init.calculate_gain", [...args]);
    },
    constant_(tensor: Tensor, val: number): Tensor {
      return callTensor(session, "nn.init.constant_", [tensor, val]);
    },
    dirac_(
      ...args:
        [tensor: Tensor, options?: DiracOptions] | [tensor: Tensor, groups: number, options?: DiracOptions]
    ): Tensor {
      return callTensor(session, "nn.init.dirac_", [...args]);
    },
    eye_(tensor: Tensor): Tensor {
      return callTensor(session, "nn.init.eye_", [tensor]);
    },
    kaimingNormal_(
      ...args:
        | [tensor: Tensor, options?: KaimingNormalOptions]
        | [tensor: Tensor, a: number, options?: KaimingNormalOptions]
        | [tensor: Tensor, a: number, mode: "fan_in" | "fan_out", options?: KaimingNormalOptions]
    ): Tensor {
      return callTensor(session, "nn.init.kaiming_normal_", [...args]);
    },
    kaimingUniform_(
      ...args:
        | [tensor: Tensor, options?: KaimingUniformOptions]
        | [tensor: Tensor, a: number, options?: KaimingUniformOptions]
        | [tensor: Tensor, a: number, mode: "fan_in" | "fan_out", options?: KaimingUniformOptions]
    ): Tensor {
      return callTensor(session, "nn.init.kaiming_uniform_", [...args]);
    },
    normal_(
      ...args:
        | [tensor: Tensor, options?: NormalOptions]
        | [tensor: Tensor, mean: number, options?: NormalOptions]
        | [tensor: Tensor, mean: number, std: number, options?: NormalOptions]
    ): Tensor {
      return callTensor(session, "nn.init.normal_", [...args]);
    },
    ones_(tensor: Tensor): Tensor {
      return callTensor(session, "nn.init.ones_", [tensor]);
    },
    orthogonal_(
      ...args:
        | [tensor: Tensor, options?: OrthogonalOptions]
        | [tensor: Tensor, gain: number, options?: OrthogonalOptions]
    ): Tensor {
      return callTensor(session, "nn.init.orthogonal_", [...args]);
    },
    sparse_(
      ...args:
        | [tensor: Tensor, sparsity: number, options?: SparseOptions]
        | [tensor: Tensor, sparsity: number, std: number, options?: SparseOptions]
    ): Tensor {
      return callTensor(session, "nn.init.sparse_", [...args]);
    },
    truncNormal_(
      ...args:
        | [tensor: Tensor, options?: TruncNormalOptions]
        | [tensor: Tensor, mean: number, options?: TruncNormalOptions]
        | [tensor: Tensor, mean: number, std: number, options?: TruncNormalOptions]
    ): Tensor {
      return callTensor(session, "nn.init.trunc_normal_", [...args]);
    },
    uniform_(
      ...args:
        | [tensor: Tensor, options?: UniformOptions]
        | [tensor: Tensor, a: number, options?: UniformOptions]
        | [tensor: Tensor, a: number, b: number, options?: UniformOptions]
    ): Tensor {
      return callTensor(session, "nn.init.uniform_", [...args]);
    },
    xavierNormal_(
      ...args:
        | [tensor: Tensor, options?: XavierNormalOptions]
        | [tensor: Tensor, gain: number, options?: XavierNormalOptions]
    ): Tensor {
      return callTensor(session, "nn.init.xavier_normal_", [...args]);
    },
    xavierUniform_(
      ...args:
        | [tensor: Tensor, options?: XavierUniformOptions]
        | [tensor: Tensor, gain: number, options?: XavierUniformOptions]
    ): Tensor {
      return callTensor(session, "nn.init.xavier_uniform_", [...args]);
    },
    zeros_(tensor: Tensor): Tensor {
      return callTensor(session, "nn.init.zeros_", [tensor]);
    },
  };
}

/** The layers. */
export interface Layers {
  /**
   * Layers of gated recurrent units over sequences: x (length, n, inputSize) to (outputs, h).
   *
   * As torch.nn.GRU; shapes and arguments are those of LSTM. Throws ArgumentError.
   *
   * ```js
   * const [outputs, h] = new nn.GRU(3, 5, { bidirectional: true }).forward(Tensor.rand(7, 2, 3));
   * [(await outputs.ready()).shape, (await h.ready()).shape]; // [[7, 2, 10], [2, 2, 5]]
   * ```
   */
  readonly GRU: Constructor<GRUArguments, GRU>;
  /**
   * Layers of LSTM over sequences: x (length, n, inputSize) to (outputs, (h, c)), as torch.nn.LSTM.
   *
   * outputs (length, n, directions * hiddenSize); h and c, the state after the last step, (numLayers *
   * directions, n, hiddenSize). `batchFirst`: x and the outputs are (n, length, ...). Without a batch, n is
   * missing everywhere. `dropout`: in training, between layers. Throws ArgumentError.
   *
   * ```js
   * const [outputs, [h, c]] = new nn.LSTM(3, 5).forward(Tensor.rand(7, 2, 3));
   * [(await outputs.ready()).shape, (await h.ready()).shape]; // [[7, 2, 5], [1, 2, 5]]
   * ```
   */
  readonly LSTM: Constructor<LSTMArguments, LSTM>;
  /**
   * Batch normalisation over every axis but 1, with running statistics when not `Tensor.training`.
   *
   * The statistics never get a gradient, so an optimizer does not change them, even after `requiresGrad_()`
   * on everything that `nn.state.getParameters` finds. 16-bit floats are normalised in float32; the result
   * has the dtype that x and weight promote to.
   *
   * ```js
   * (await new nn.BatchNorm(3).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 3, 8, 8]
   * ```
   */
  readonly BatchNorm: Constructor<BatchNormArguments, BatchNorm>;
  /**
   * x1ᵀ · weight[k] · x2 + bias[k] for each output feature k: (..., in1) and (..., in2) to (..., out).
   *
   * weight (out, in1, in2) and bias (out) start uniform in ±1/sqrt(in1Features).
   *
   * ```js
   * (await new nn.Bilinear(3, 4, 5).forward(Tensor.rand(2, 3), Tensor.rand(2, 4)).ready()).shape; // [2, 5]
   * ```
   */
  readonly Bilinear: Constructor<BilinearArguments, Bilinear>;
  /**
   * Conv2d over one axis: (n, in, length) to (n, out, new length); weight (out, in/groups, kernel).
   *
   * ```js
   * (await new nn.Conv1d(3, 16, 5).forward(Tensor.rand(2, 3, 20)).ready()).shape; // [2, 16, 16]
   * ```
   */
  readonly Conv1d: Constructor<Conv1dArguments, Conv1d>;
  /**
   * conv2d with weight (out, in/groups, *kernel) and bias (out); `padding` may be 'same' or 'valid'.
   *
   * As many spatial axes as `kernelSize` has integers; an integer is two. Both start uniform in ±1/sqrt(fan in).
   * Throws ArgumentError for invalid sizes.
   *
   * ```js
   * (await new nn.Conv2d(3, 16, 3, { padding: "same" }).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 16, 8, 8]
   * ```
   */
  readonly Conv2d: Constructor<Conv2dArguments, Conv2d>;
  /**
   * Conv2d over three axes: (n, in, d, h, w); weight (out, in/groups, kd, kh, kw).
   *
   * ```js
   * (await new nn.Conv3d(3, 4, 2).forward(Tensor.rand(1, 3, 5, 5, 5)).ready()).shape; // [1, 4, 4, 4, 4]
   * ```
   */
  readonly Conv3d: Constructor<Conv3dArguments, Conv3d>;
  /**
   * ConvTranspose2d over one axis: (n, in, length); weight (in, out/groups, kernel).
   *
   * ```js
   * (await new nn.ConvTranspose1d(3, 16, 2, { stride: 2 }).forward(Tensor.rand(2, 3, 8)).ready()).shape; // [2, 16, 16]
   * ```
   */
  readonly ConvTranspose1d: Constructor<ConvTranspose1dArguments, ConvTranspose1d>;
  /**
   * The transpose (gradient) of Conv2d, which makes images larger: weight (in, out/groups, *kernel).
   *
   * The new size of each spatial axis is (size - 1) * stride - 2 * padding + dilation * (kernel - 1) +
   * outputPadding + 1. Throws ArgumentError, also for an outputPadding that is smaller than neither stride
   * nor dilation.
   *
   * ```js
   * (await new nn.ConvTranspose2d(3, 16, 2, { stride: 2 }).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 16, 16, 16]
   * ```
   */
  readonly ConvTranspose2d: Constructor<ConvTranspose2dArguments, ConvTranspose2d>;
  /**
   * ConvTranspose2d over three axes: (n, in, d, h, w); weight (in, out/groups, kd, kh, kw).
   *
   * ```js
   * (await new nn.ConvTranspose3d(3, 4, 2, { stride: 2 }).forward(Tensor.rand(1, 3, 4, 4, 4)).ready()).shape; // [1, 4, 8, 8, 8]
   * ```
   */
  readonly ConvTranspose3d: Constructor<ConvTranspose3dArguments, ConvTranspose3d>;
  /**
   * Rows of a table by integer: (...) to (..., embedSize).
   *
   * The table starts uniform by Glorot, as tinygrad's; torch's starts with deviation 1.
   *
   * ```js
   * (await new nn.Embedding(100, 8).forward(new Tensor([[1, 5, 7]], { dtype: "int32" })).ready()).shape; // [1, 3, 8]
   * ```
   */
  readonly Embedding: Constructor<EmbeddingArguments, Embedding>;
  /**
   * Normalisation of `numGroups` groups of the channels (axis 1), then weight and bias per channel.
   *
   * Throws ArgumentError unless the channels divide into that many groups.
   *
   * ```js
   * (await new nn.GroupNorm(2, 4).forward(Tensor.rand(2, 4, 8, 8)).ready()).shape; // [2, 4, 8, 8]
   * ```
   */
  readonly GroupNorm: Constructor<GroupNormArguments, GroupNorm>;
  /**
   * Normalisation of each channel of each image by itself.
   *
   * ```js
   * (await new nn.InstanceNorm(3).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 3, 8, 8]
   * ```
   */
  readonly InstanceNorm: Constructor<InstanceNormArguments, InstanceNorm>;
  /**
   * One step of an LSTM: x (n, inputSize) and a state (h, c), both (n, hiddenSize), to the next one.
   *
   * ```js
   * const [h, c] = new nn.LSTMCell(3, 5).forward(Tensor.rand(2, 3));
   * [(await h.ready()).shape, (await c.ready()).shape]; // [[2, 5], [2, 5]]
   * ```
   */
  readonly LSTMCell: Constructor<LSTMCellArguments, LSTMCell>;
  /**
   * Layer normalisation over the last axes, of shape `normalizedShape`, then weight and bias.
   *
   * ```js
   * await new nn.LayerNorm(3).forward(new Tensor([1, 2, 3])).tolist(); // ≈ [-1.2247, 0, 1.2247]
   * ```
   */
  readonly LayerNorm: Constructor<LayerNormArguments, LayerNorm>;
  /**
   * Layer normalisation over the channels (axis 1) of images (n, channels, h, w).
   *
   * ```js
   * (await new nn.LayerNorm2d(3).forward(Tensor.rand(2, 3, 8, 8)).ready()).shape; // [2, 3, 8, 8]
   * ```
   */
  readonly LayerNorm2d: Constructor<LayerNorm2dArguments, LayerNorm2d>;
  /**
   * x · weightᵀ + bias: (..., inFeatures) to (..., outFeatures).
   *
   * weight (out, in) and bias (out) start uniform in ±1/sqrt(inFeatures).
   *
   * ```js
   * const layer = new nn.Linear(3, 5);
   * [(await layer.forward(Tensor.rand(2, 3)).ready()).shape, (await layer.weight.ready()).shape]; // [[2, 5], [5, 3]]
   * ```
   */
  readonly Linear: Constructor<LinearArguments, Linear>;
  /**
   * Attention of `numHeads` heads, with torch.nn.MultiheadAttention's parameters and masks.
   *
   * query (length, n, embedDim), key (keys, n, kdim) and value (keys, n, vdim) give (outputs, weights):
   * outputs like the query, weights (n, length, keys). With `batchFirst` n comes first; without a batch it is
   * missing. If kdim and vdim equal embedDim, `inProjWeight` holds all three projections. `dropout`: of the
   * weights, in training. Throws ArgumentError.
   *
   * ```js
   * const x = Tensor.rand(7, 2, 8);
   * const [outputs, weights] = new nn.MultiheadAttention(8, 2).forward(x, x, x);
   * [(await outputs.ready()).shape, (await weights.ready()).shape]; // [[7, 2, 8], [2, 7, 7]]
   * ```
   */
  readonly MultiheadAttention: Constructor<MultiheadAttentionArguments, MultiheadAttention>;
  /**
   * x / sqrt(mean(x²) + eps) over the last axes, of shape `dim` (an integer: one axis), times weight.
   *
   * Computed in float32 (Zhang and Sennrich, 2019).
   *
   * ```js
   * await new nn.RMSNorm(2).forward(new Tensor([3, 4])).tolist(); // ≈ [0.8485, 1.1314]
   * ```
   */
  readonly RMSNorm: Constructor<RMSNormArguments, RMSNorm>;
  /**
   * Self-attention and two linear layers, each with a normalisation and a residual connection.
   *
   * x (n, length, embedDim) to the same shape. Parameters are those of torch.nn.TransformerEncoderLayer(...,
   * batchFirst: true), by its names. `ffDim`: between the linear layers, 4 * embedDim unless given.
   * `normFirst`: normalise the input of each part (Xiong et al., 2020), else the sum after the residual
   * connection, as in the original. `activation`: 'relu', 'gelu', 'gelu_tanh', 'silu', or a function of a
   * Tensor.
   *
   * Throws ArgumentError.
   *
   * ```js
   * (await new nn.TransformerBlock(8, 2).forward(Tensor.rand(2, 7, 8)).ready()).shape; // [2, 7, 8]
   * ```
   */
  readonly TransformerBlock: Constructor<TransformerBlockArguments, TransformerBlock>;
  /** `BatchNorm`, by another name. */
  readonly BatchNorm2d: Constructor<BatchNormArguments, BatchNorm>;
  /** `BatchNorm`, by another name. */
  readonly BatchNorm3d: Constructor<BatchNormArguments, BatchNorm>;
}

/** The optimizers. */
export interface Optimizers {
  /**
   * SGD that also keeps the mean of the parameters after step `t0`, in `ax` (Polyak and Juditsky, 1992).
   *
   * The learning rate of step t is lr / (1 + lambd lr t)^alpha; `lambd` decays the parameters, too. Until
   * `t0`, `ax` equals the parameters. As in torch, where a changed learning rate takes effect one step later.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.ASGD([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.8, -1.6]
   * ```
   */
  readonly ASGD: Constructor<ASGDArguments, ASGD>;
  /**
   * Adam whose steps are scaled for each parameter, by |p| / |step| (You et al., 2020).
   *
   * The scale is 1 where a norm is 0, and everywhere with `adam`.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.LAMB([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.8419, -1.8419]
   * ```
   */
  readonly LAMB: Constructor<LAMBArguments, LAMB>;
  /**
   * Layer-wise adaptive rate scaling (You et al., 2017): SGD whose steps are scaled for each parameter.
   *
   * The scale is `tcoef` * |p| / (|g| + weightDecay * |p|), and 1 where a norm is 0. `preWd`: weight decay
   * is added to the gradient, else subtracted from the parameter. `classic`: the learning rate scales the
   * gradient before it is added to the momentum.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.LARS([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.9999, -1.9998]
   * ```
   */
  readonly LARS: Constructor<LARSArguments, LARS>;
  /**
   * The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, as torch.optim.LBFGS.
   *
   * A step gets a function that discards the gradients, computes the loss and its gradients, and returns the
   * loss. It makes up to `maxIter` iterations and calls the closure up to `maxEval` times (1.25 * maxIter
   * unless given). It ends early if no gradient is over `toleranceGrad`, or if loss and parameters change by
   * less than `toleranceChange`. `historySize`: the number of past steps that approximate the curvature.
   * `lineSearchFn`: null for steps of length `lr`, or 'strong_wolfe'. Only one parameter group. Throws
   * ArgumentError.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.LBFGS([w], { lineSearchFn: "strong_wolfe" });
   * await Tensor.train(() =>
   *   optimizer.stepWith(() => {
   *     optimizer.zeroGrad();
   *     return w.sub(3).square().sum().backward();
   *   }),
   * );
   * await w.tolist(); // ≈ [3, 3]
   * ```
   */
  readonly LBFGS: Constructor<LBFGSArguments, LBFGS>;
  /**
   * Stochastic gradient descent, with momentum (Nesterov's if asked), weight decay added to the gradient.
   *
   * `classic`: the learning rate scales the gradient before it is added to the momentum.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.SGD([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.8, -1.6]
   * ```
   */
  readonly SGD: Constructor<SGDArguments, SGD>;
  /**
   * Gradients scaled by the ratio of the RMS of past steps to the RMS of gradients (Zeiler, 2012).
   *
   * `rho`: the decay of the running means of both squares.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.Adadelta([w]);
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.9968, -1.9968]
   * ```
   */
  readonly Adadelta: Constructor<AdadeltaArguments, Adadelta>;
  /**
   * Gradients divided by the root of the sum of all their squares so far (Duchi et al., 2011).
   *
   * `lrDecay`: the learning rate of step t is lr / (1 + (t - 1) lrDecay). `initialAccumulatorValue`: the
   * initial value of the sum.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.Adagrad([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.9, -1.9]
   * ```
   */
  readonly Adagrad: Constructor<AdagradArguments, Adagrad>;
  /**
   * Adam with decoupled weight decay (Loshchilov and Hutter, 2019). `betas`: torch's name for b1 and b2.
   *
   * `decoupled: false`: weight decay is added to the gradient, as torch's Adam does.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.AdamW([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.899, -1.898]
   * ```
   */
  readonly AdamW: Constructor<AdamWArguments, AdamW>;
  /**
   * Adam that divides by the greatest past gradient, which decays by b2 (Kingma and Ba, 2015).
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.Adamax([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.9, -1.9]
   * ```
   */
  readonly Adamax: Constructor<AdamaxArguments, Adamax>;
  /**
   * Several schedulers at once, each of which scales the rate: the first rate times all their factors.
   *
   * Step only this one. Throws ArgumentError for a scheduler that is not a pure scaling, for instance with an
   * `etaMin`.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const warmUp = new nn.optim.ConstantLR(optimizer, 0.5, { totalIters: 2 });
   * const decay = new nn.optim.ExponentialLR(optimizer, 0.5);
   * const scheduler = new nn.optim.ChainedScheduler([warmUp, decay]);
   * const rates = [];
   * for (let i = 0; i < 4; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [0.5, 0.25, 0.25, 0.125]
   * ```
   */
  readonly ChainedScheduler: Constructor<ChainedSchedulerArguments, ChainedScheduler>;
  /**
   * The rate times `factor` for the first `totalIters` steps. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.ConstantLR(optimizer, 0.5, { totalIters: 2 });
   * const rates = [];
   * for (let i = 0; i < 4; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [0.5, 0.5, 1, 1]
   * ```
   */
  readonly ConstantLR: Constructor<ConstantLRArguments, ConstantLR>;
  /**
   * From the first rate to `etaMin` in `T_max` steps, along half a cosine, and back in as many.
   *
   * Loshchilov and Hutter, 2017. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.CosineAnnealingLR(optimizer, 4);
   * const rates = [];
   * for (let i = 0; i < 5; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [1, 0.854, 0.5, 0.146, 0]
   * ```
   */
  readonly CosineAnnealingLR: Constructor<CosineAnnealingLRArguments, CosineAnnealingLR>;
  /**
   * From the first rate to `etaMin` along half a cosine in `T_0` steps; then it restarts, with `T_mult`
   * times as many steps each time.
   *
   * Loshchilov and Hutter, 2017. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.CosineAnnealingWarmRestarts(optimizer, 2);
   * const rates = [];
   * for (let i = 0; i < 5; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [1, 0.5, 1, 0.5, 1]
   * ```
   */
  readonly CosineAnnealingWarmRestarts: Constructor<
    CosineAnnealingWarmRestartsArguments,
    CosineAnnealingWarmRestarts
  >;
  /**
   * The rate cycles between `baseLr` and `maxLr`: it rises in `stepSizeUp` steps and falls in
   * `stepSizeDown`.
   *
   * Smith, 2017. `mode`: 'triangular'; 'triangular2' halves the amplitude in every cycle; 'exp_range'
   * multiplies it by gamma^count. `baseLr`, `maxLr`: for all parameter groups, or one for each. The rate
   * that the optimizer was made with is not used, and momentum does not change. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.CyclicLR(optimizer, 0.1, 0.5, { stepSizeUp: 2 });
   * const rates = [];
   * for (let i = 0; i < 5; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [0.1, 0.3, 0.5, 0.3, 0.1]
   * ```
   */
  readonly CyclicLR: Constructor<CyclicLRArguments, CyclicLR>;
  /**
   * The rate times `gamma` after every step. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.ExponentialLR(optimizer, 0.5);
   * const rates = [];
   * for (let i = 0; i < 4; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [1, 0.5, 0.25, 0.125]
   * ```
   */
  readonly ExponentialLR: Constructor<ExponentialLRArguments, ExponentialLR>;
  /**
   * The rate times a factor that changes linearly from `startFactor` to `endFactor` in `totalIters`
   * steps, and then stays constant.
   *
   * The defaults are a warm-up; a falling factor is a decay. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.LinearLR(optimizer, 0.25, { totalIters: 3 });
   * const rates = [];
   * for (let i = 0; i < 4; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [0.25, 0.5, 0.75, 1]
   * ```
   */
  readonly LinearLR: Constructor<LinearLRArguments, LinearLR>;
  /**
   * The rate times `gamma` at each of the counts `milestones`. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.MultiStepLR(optimizer, [1, 3]);
   * const rates = [];
   * for (let i = 0; i < 4; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [1, 0.1, 0.1, 0.01]
   * ```
   */
  readonly MultiStepLR: Constructor<MultiStepLRArguments, MultiStepLR>;
  /**
   * Momentum whose matrices are approximately orthogonalized before they are subtracted (Jordan, 2024).
   *
   * For the hidden matrices of a network; a parameter with more axes is a matrix of its first axis by all
   * others. Orthogonalization takes `nsSteps` of the Newton-Schulz iteration with the odd polynomial of
   * `nsCoefficients`. Weight decay is decoupled. `adjustLrFn`: how the learning rate grows with the shape
   * (rows, columns), as in torch: 'original', by sqrt(max(1, rows / columns)), 'match_rms_adamw', by 0.2 *
   * sqrt(max(rows, columns)), or null, not at all.
   *
   * ```js
   * const w = Tensor.eye(2).requiresGrad_();
   * const optimizer = new nn.optim.Muon([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * (await w.ready()).shape; // [2, 2]
   * ```
   */
  readonly Muon: Constructor<MuonArguments, Muon>;
  /**
   * Adam with Nesterov's momentum, whose decay grows to b1 by `momentumDecay` (Dozat, 2016).
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.NAdam([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.8944, -1.8944]
   * ```
   */
  readonly NAdam: Constructor<NAdamArguments, NAdam>;
  /**
   * The rate rises to `maxLr` in the first `pctStart` of `totalSteps` steps, and then falls to almost 0.
   *
   * Smith and Topin, 2018. The rate starts at maxLr / divFactor and ends at that / finalDivFactor. The
   * rate that the optimizer was made with is not used, and momentum does not change. `threePhase`: fall as
   * fast as the rise, then to the final rate. `annealStrategy`: 'cos' or 'linear'. `maxLr`: for all
   * parameter groups, or one for each. The number of steps may be given as `epochs` times `stepsPerEpoch`.
   * Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.OneCycleLR(optimizer, 1, { totalSteps: 5 });
   * const rates = [];
   * for (let i = 0; i < 5; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [0.04, 0.95, 0.611, 0.188, 0]
   * ```
   */
  readonly OneCycleLR: Constructor<OneCycleLRArguments, OneCycleLR>;
  /**
   * Several optimizers that step together.
   *
   * ```js
   * const [w, b] = [new Tensor([1], { requiresGrad: true }), new Tensor([0], { requiresGrad: true })];
   * const optimizer = new nn.optim.OptimizerGroup(new nn.optim.SGD([w], { lr: 0.1 }), new nn.optim.Adam([b], { lr: 0.1 }));
   * Tensor.train(() => {
   *   w.mul(3).add(b).sum().backward();
   *   optimizer.step();
   * });
   * await Promise.all([w, b].map((t) => t.item())); // ≈ [0.7, -0.1]
   * ```
   */
  readonly OptimizerGroup: Constructor<OptimizerGroupArguments, OptimizerGroup>;
  /**
   * The rate times (1 - count / totalIters)^power, down to 0, where it stays. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.PolynomialLR(optimizer, 4);
   * const rates = [];
   * for (let i = 0; i < 5; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [1, 0.75, 0.5, 0.25, 0]
   * ```
   */
  readonly PolynomialLR: Constructor<PolynomialLRArguments, PolynomialLR>;
  /**
   * Adam that rectifies the variance of its adaptive learning rate in early steps (Liu et al., 2020).
   *
   * The first steps (five, with the usual b2) use momentum alone.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.RAdam([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.8, -1.6]
   * ```
   */
  readonly RAdam: Constructor<RAdamArguments, RAdam>;
  /**
   * Gradients divided by the root of a running mean of their squares (Tieleman and Hinton, 2012).
   *
   * `alpha`: the decay of that mean. `centered`: divide by the standard deviation. As torch.optim.RMSprop.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.RMSprop([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0, -1]
   * ```
   */
  readonly RMSprop: Constructor<RMSpropArguments, RMSprop>;
  /**
   * Multiply the rates by `factor` when a metric has not improved for more than `patience` steps.
   *
   *     scheduler.step(validationLoss);
   *
   * `mode`: whether lower ('min') or higher ('max') is better. An improvement must exceed `threshold`,
   * relative to the best so far ('rel') or absolute ('abs'). After a reduction, `cooldown` steps do not count.
   * Rates do not fall below `minLr` (or one for each group), and changes of less than `eps` are skipped.
   * Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.ReduceLROnPlateau(optimizer, { patience: 1 });
   * for (const loss of [0.5, 0.6, 0.6, 0.6]) {
   *   scheduler.step(loss);
   * }
   * await optimizer.lr.item(); // ≈ 0.1
   * ```
   */
  readonly ReduceLROnPlateau: Constructor<ReduceLROnPlateauArguments, ReduceLROnPlateau>;
  /**
   * Steps by the gradient's sign, whose size adapts for each element (Riedmiller and Braun, 1993).
   *
   * `etas`: the factors of a step size when the sign changed (that step is skipped, too) and when it did not.
   * `stepSizes`: the least and the greatest step size; `lr` is the first one. Meant for full batches.
   *
   * ```js
   * const w = new Tensor([1, -2], { requiresGrad: true });
   * const optimizer = new nn.optim.Rprop([w], { lr: 0.1 });
   * Tensor.train(() => {
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * });
   * await w.tolist(); // ≈ [0.9, -1.9]
   * ```
   */
  readonly Rprop: Constructor<RpropArguments, Rprop>;
  /**
   * Schedulers in sequence: each of `milestones` is the count at which the next one starts from 0.
   *
   *     const warmUp = new LinearLR(optimizer, 0.1, { totalIters: 100 });
   *     const cosine = new CosineAnnealingLR(optimizer, 900);
   *     const scheduler = new SequentialLR(optimizer, [warmUp, cosine], [100]);
   *
   * Step only this one. Throws ArgumentError unless there is one milestone less than schedulers, in order.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const warmUp = new nn.optim.LinearLR(optimizer, 0.5, { totalIters: 2 });
   * const decay = new nn.optim.ExponentialLR(optimizer, 0.5);
   * const scheduler = new nn.optim.SequentialLR(optimizer, [warmUp, decay], [2]);
   * const rates = [];
   * for (let i = 0; i < 5; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [0.5, 0.75, 1, 0.5, 0.25]
   * ```
   */
  readonly SequentialLR: Constructor<SequentialLRArguments, SequentialLR>;
  /**
   * The rate times `gamma` after every `stepSize` steps. Throws ArgumentError.
   *
   * ```js
   * const optimizer = new nn.optim.SGD([new Tensor([1], { requiresGrad: true })], { lr: 1 });
   * const scheduler = new nn.optim.StepLR(optimizer, 2);
   * const rates = [];
   * for (let i = 0; i < 4; i++) {
   *   rates.push(await optimizer.lr.item());
   *   scheduler.step();
   * }
   * rates; // ≈ [1, 1, 0.1, 0.1]
   * ```
   */
  readonly StepLR: Constructor<StepLRArguments, StepLR>;
  /** Adam (Kingma and Ba, 2015): AdamW whose weight decay, if any, is added to the gradient. */
  readonly Adam: Constructor<AdamArguments, Adam>;
}

/** @internal */
export const LAYERS = {
  GRU,
  LSTM,
  BatchNorm,
  Bilinear,
  Conv1d,
  Conv2d,
  Conv3d,
  ConvTranspose1d,
  ConvTranspose2d,
  ConvTranspose3d,
  Embedding,
  GroupNorm,
  InstanceNorm,
  LSTMCell,
  LayerNorm,
  LayerNorm2d,
  Linear,
  MultiheadAttention,
  RMSNorm,
  TransformerBlock,
  BatchNorm2d: BatchNorm,
  BatchNorm3d: BatchNorm,
};

/** @internal */
export const OPTIMIZERS = {
  ASGD,
  LAMB,
  LARS,
  LBFGS,
  SGD,
  Adadelta,
  Adagrad,
  AdamW,
  Adamax,
  ChainedScheduler,
  ConstantLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  CyclicLR,
  ExponentialLR,
  LinearLR,
  MultiStepLR,
  Muon,
  NAdam,
  OneCycleLR,
  OptimizerGroup,
  PolynomialLR,
  RAdam,
  RMSprop,
  ReduceLROnPlateau,
  Rprop,
  SequentialLR,
  StepLR,
  Adam,
};
