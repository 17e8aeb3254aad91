// Generated from the API manifest by scripts/generate_api.mjs (`make api`): do not edit.

import { alias, callTensor, callTensorList, callVoid } from "../calls";
import { PythonObject, type Constructor, type Shape } from "../object";
import type { Tensor } from "./tensor";

/** Arguments of `nn.BatchNorm` by name. */
export interface BatchNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly affine?: boolean | undefined;
  /** true unless given. */ readonly trackRunningStats?: boolean | undefined;
  /** 0.1 unless given. */ readonly momentum?: number | undefined;
}

export type BatchNormArguments =
  [sz: number, options?: BatchNormOptions] | [sz: number, eps: number, options?: BatchNormOptions];

/**
 * Batch normalisation over every axis but 1, with running statistics when not `Tensor.training`.
 *
 * 16-bit floats are normalised in float32; the result has the dtype of x and weight together.
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
    return this.plain("eps") as number;
  }

  /** In a worker known after `ready()`. */
  get trackRunningStats(): boolean {
    return this.plain("track_running_stats") as boolean;
  }
  /** `trackRunningStats`, by its Python name. */
  declare track_running_stats: BatchNorm["trackRunningStats"];

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return this.plain("momentum") as number;
  }

  /** null without `affine`. */
  get weight(): Tensor | null {
    return this.optional("weight");
  }

  set weight(value: Tensor | null) {
    this.assign("weight", value);
  }

  /** null without `affine`. */
  get bias(): Tensor | null {
    return this.optional("bias");
  }

  set bias(value: Tensor | null) {
    this.assign("bias", value);
  }

  get numBatchesTracked(): Tensor {
    return this.attribute("num_batches_tracked");
  }

  set numBatchesTracked(value: Tensor) {
    this.assign("num_batches_tracked", value);
  }
  /** `numBatchesTracked`, by its Python name. */
  declare num_batches_tracked: BatchNorm["numBatchesTracked"];

  /** null without `trackRunningStats`. */
  get runningMean(): Tensor | null {
    return this.optional("running_mean");
  }

  set runningMean(value: Tensor | null) {
    this.assign("running_mean", value);
  }
  /** `runningMean`, by its Python name. */
  declare running_mean: BatchNorm["runningMean"];

  /** null without `trackRunningStats`. */
  get runningVar(): Tensor | null {
    return this.optional("running_var");
  }

  set runningVar(value: Tensor | null) {
    this.assign("running_var", value);
  }
  /** `runningVar`, by its Python name. */
  declare running_var: BatchNorm["runningVar"];

  forward(x: Tensor): Tensor {
    return callTensor(this.session, "nn.BatchNorm.__call__", [this, x]);
  }
}
alias(BatchNorm.prototype, {
  track_running_stats: "trackRunningStats",
  num_batches_tracked: "numBatchesTracked",
  running_mean: "runningMean",
  running_var: "runningVar",
});

/** Arguments of `nn.Conv2d` by name. */
export interface Conv2dOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | "same" | "valid" | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** true unless given. */ readonly bias?: boolean | undefined;
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

/** conv2d with weight (out, in/groups, *kernel) and bias (out,); `padding` may be 'same' or 'valid'. */
export class Conv2d extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Conv2d",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 7, default: true } }],
    values: ["kernel_size", "stride", "dilation", "groups", "padding"],
  };

  /** In a worker known after `ready()`. */
  get kernelSize(): readonly number[] {
    return this.plain("kernel_size") as readonly number[];
  }
  /** `kernelSize`, by its Python name. */
  declare kernel_size: Conv2d["kernelSize"];

  /** In a worker known after `ready()`. */
  get stride(): number | readonly number[] {
    return this.plain("stride") as number | readonly number[];
  }

  /** In a worker known after `ready()`. */
  get dilation(): number | readonly number[] {
    return this.plain("dilation") as number | readonly number[];
  }

  /** In a worker known after `ready()`. */
  get groups(): number {
    return this.plain("groups") as number;
  }

  /** In a worker known after `ready()`. */
  get padding(): number | readonly number[] {
    return this.plain("padding") as number | readonly number[];
  }

  get weight(): Tensor {
    return this.attribute("weight");
  }

  set weight(value: Tensor) {
    this.assign("weight", value);
  }

  /** null without `bias`. */
  get bias(): Tensor | null {
    return this.optional("bias");
  }

  set bias(value: Tensor | null) {
    this.assign("bias", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this.session, "nn.Conv2d.__call__", [this, x]);
  }
}
alias(Conv2d.prototype, { kernel_size: "kernelSize" });

export type EmbeddingArguments = [vocabSize: number, embedSize: number];

/** Rows of a table by integer: (...) to (..., embed_size). */
export class Embedding extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Embedding",
    tensors: [{ name: "weight" }],
    values: ["vocab_sz", "embed_sz"],
  };

  /** In a worker known after `ready()`. */
  get vocabSz(): number {
    return this.plain("vocab_sz") as number;
  }
  /** `vocabSz`, by its Python name. */
  declare vocab_sz: Embedding["vocabSz"];

  /** In a worker known after `ready()`. */
  get embedSz(): number {
    return this.plain("embed_sz") as number;
  }
  /** `embedSz`, by its Python name. */
  declare embed_sz: Embedding["embedSz"];

  get weight(): Tensor {
    return this.attribute("weight");
  }

  set weight(value: Tensor) {
    this.assign("weight", value);
  }

  forward(idx: Tensor): Tensor {
    return callTensor(this.session, "nn.Embedding.__call__", [this, idx]);
  }
}
alias(Embedding.prototype, { vocab_sz: "vocabSz", embed_sz: "embedSz" });

/** Arguments of `nn.GroupNorm` by name. */
export interface GroupNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly affine?: boolean | undefined;
}

export type GroupNormArguments =
  | [numGroups: number, numChannels: number, options?: GroupNormOptions]
  | [numGroups: number, numChannels: number, eps: number, options?: GroupNormOptions];

/** Normalisation of `num_groups` groups of the channels (axis 1), then weight and bias per channel. */
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
    return this.plain("num_groups") as number;
  }
  /** `numGroups`, by its Python name. */
  declare num_groups: GroupNorm["numGroups"];

  /** In a worker known after `ready()`. */
  get numChannels(): number {
    return this.plain("num_channels") as number;
  }
  /** `numChannels`, by its Python name. */
  declare num_channels: GroupNorm["numChannels"];

  /** In a worker known after `ready()`. */
  get eps(): number {
    return this.plain("eps") as number;
  }

  /** null without `affine`. */
  get weight(): Tensor | null {
    return this.optional("weight");
  }

  set weight(value: Tensor | null) {
    this.assign("weight", value);
  }

  /** null without `affine`. */
  get bias(): Tensor | null {
    return this.optional("bias");
  }

  set bias(value: Tensor | null) {
    this.assign("bias", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this.session, "nn.GroupNorm.__call__", [this, x]);
  }
}
alias(GroupNorm.prototype, { num_groups: "numGroups", num_channels: "numChannels" });

/** Arguments of `nn.LayerNorm` by name. */
export interface LayerNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly elementwiseAffine?: boolean | undefined;
}

export type LayerNormArguments =
  | [normalizedShape: number | readonly number[], options?: LayerNormOptions]
  | [normalizedShape: number | readonly number[], eps: number, options?: LayerNormOptions];

/** Layer normalisation over the last axes, of shape `normalized_shape`, then weight and bias. */
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
    return this.plain("normalized_shape") as readonly number[];
  }
  /** `normalizedShape`, by its Python name. */
  declare normalized_shape: LayerNorm["normalizedShape"];

  /** In a worker known after `ready()`. */
  get eps(): number {
    return this.plain("eps") as number;
  }

  /** In a worker known after `ready()`. */
  get axis(): readonly number[] {
    return this.plain("axis") as readonly number[];
  }

  /** null without `elementwiseAffine`. */
  get weight(): Tensor | null {
    return this.optional("weight");
  }

  set weight(value: Tensor | null) {
    this.assign("weight", value);
  }

  /** null without `elementwiseAffine`. */
  get bias(): Tensor | null {
    return this.optional("bias");
  }

  set bias(value: Tensor | null) {
    this.assign("bias", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this.session, "nn.LayerNorm.__call__", [this, x]);
  }
}
alias(LayerNorm.prototype, { normalized_shape: "normalizedShape" });

/** Arguments of `nn.Linear` by name. */
export interface LinearOptions {
  /** true unless given. */ readonly bias?: boolean | undefined;
}

export type LinearArguments = [inFeatures: number, outFeatures: number, options?: LinearOptions];

/**
 * x @ weightᵀ + bias: (..., in_features) to (..., out_features).
 *
 * Both start uniform in ±1/sqrt(in_features).
 */
export class Linear extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.Linear",
    tensors: [{ name: "weight" }, { name: "bias", flag: { name: "bias", position: 2, default: true } }],
    values: [],
  };

  get weight(): Tensor {
    return this.attribute("weight");
  }

  set weight(value: Tensor) {
    this.assign("weight", value);
  }

  /** null without `bias`. */
  get bias(): Tensor | null {
    return this.optional("bias");
  }

  set bias(value: Tensor | null) {
    this.assign("bias", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this.session, "nn.Linear.__call__", [this, x]);
  }
}

/** Arguments of `nn.RMSNorm` by name. */
export interface RMSNormOptions {
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly elementwiseAffine?: boolean | undefined;
}

export type RMSNormArguments =
  [dim: number, options?: RMSNormOptions] | [dim: number, eps: number, options?: RMSNormOptions];

/** x / sqrt(mean(x²) + eps) over the last axis, times weight. Computed in float32. */
export class RMSNorm extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.RMSNorm",
    tensors: [{ name: "weight", flag: { name: "elementwise_affine", position: 2, default: true } }],
    values: ["eps"],
  };

  /** In a worker known after `ready()`. */
  get eps(): number {
    return this.plain("eps") as number;
  }

  /** null without `elementwiseAffine`. */
  get weight(): Tensor | null {
    return this.optional("weight");
  }

  set weight(value: Tensor | null) {
    this.assign("weight", value);
  }

  forward(x: Tensor): Tensor {
    return callTensor(this.session, "nn.RMSNorm.__call__", [this, x]);
  }
}

/**
 * The base of optimizers: the Tensors that are trained, and the learning rate `lr`, a Tensor that may be
 * assigned.
 */
export class Optimizer extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.Optimizer",
    tensors: [{ name: "lr" }],
    values: ["device"],
    lists: true,
  };

  /** A promise: how many there are is known when it has been made. */
  get params(): Promise<Tensor[]> {
    return this.list("params");
  }

  /** A promise: how many there are is known when it has been made. */
  get buffers(): Promise<Tensor[]> {
    return this.list("buffers");
  }

  /** In a worker known after `ready()`. */
  get device(): string {
    return this.plain("device") as string;
  }

  get lr(): Tensor {
    return this.attribute("lr");
  }

  set lr(value: Tensor) {
    this.assign("lr", value);
  }

  /** Forget the gradients. */
  zeroGrad(): void {
    callVoid(this.session, "nn.optim.Optimizer.zero_grad", [this]);
  }
  /** `zeroGrad`, by its Python name. */
  declare zero_grad: Optimizer["zeroGrad"];

  /**
   * Change the parameters by their gradients, and compute that.
   *
   * Gradients of inputs that neither said `requires_grad` nor were read are dropped: they would have to be
   * computed now, from the old parameters. Throws GradientError when one has none.
   */
  step(): void {
    callVoid(this.session, "nn.optim.Optimizer.step", [this]);
  }

  /** `step`, lazily: the Tensors to realize. */
  scheduleStep(): Promise<Tensor[]> {
    return callTensorList(this.session, "nn.optim.Optimizer.schedule_step", [this]);
  }
  /** `scheduleStep`, by its Python name. */
  declare schedule_step: Optimizer["scheduleStep"];
}
alias(Optimizer.prototype, { zero_grad: "zeroGrad", schedule_step: "scheduleStep" });

export type OptimizerGroupArguments = [...optimizers: (readonly Optimizer[])[]];

/** Several optimizers as one. */
export class OptimizerGroup extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.OptimizerGroup",
    tensors: [],
    values: [],
    lists: true,
  };

  /** A promise: how many there are is known when it has been made. */
  get params(): Promise<Tensor[]> {
    return this.list("params");
  }

  /** Forget the gradients. */
  zeroGrad(): void {
    callVoid(this.session, "nn.optim.OptimizerGroup.zero_grad", [this]);
  }
  /** `zeroGrad`, by its Python name. */
  declare zero_grad: OptimizerGroup["zeroGrad"];

  /** Every optimizer's step, lazily: the Tensors to realize. */
  scheduleStep(): Promise<Tensor[]> {
    return callTensorList(this.session, "nn.optim.OptimizerGroup.schedule_step", [this]);
  }
  /** `scheduleStep`, by its Python name. */
  declare schedule_step: OptimizerGroup["scheduleStep"];

  /** Every optimizer's step, in one Program. */
  step(): void {
    callVoid(this.session, "nn.optim.OptimizerGroup.step", [this]);
  }
}
alias(OptimizerGroup.prototype, { zero_grad: "zeroGrad", schedule_step: "scheduleStep" });

/** Arguments of `nn.InstanceNorm` by name. */
export interface InstanceNormOptions {
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
  /** true unless given. */ readonly affine?: boolean | undefined;
}

export type InstanceNormArguments =
  | [numFeatures: number, options?: InstanceNormOptions]
  | [numFeatures: number, eps: number, options?: InstanceNormOptions];

/** Normalisation of each channel of each image by itself. */
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
 */
export class SGD extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.SGD",
    tensors: [{ name: "lr" }],
    values: ["device", "momentum", "weight_decay", "nesterov", "classic"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get momentum(): number {
    return this.plain("momentum") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return this.plain("weight_decay") as number;
  }
  /** `weightDecay`, by its Python name. */
  declare weight_decay: SGD["weightDecay"];

  /** In a worker known after `ready()`. */
  get nesterov(): boolean {
    return this.plain("nesterov") as boolean;
  }

  /** In a worker known after `ready()`. */
  get classic(): boolean {
    return this.plain("classic") as boolean;
  }

  /** A promise: how many there are is known when it has been made. */
  get b(): Promise<Tensor[]> {
    return this.list("b");
  }
}
alias(SGD.prototype, { weight_decay: "weightDecay" });

/** Arguments of `nn.optim.AdamW` by name. */
export interface AdamWOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** 0.01 unless given. */ readonly weightDecay?: number | undefined;
  readonly device?: string | null | undefined;
}

export type AdamWArguments =
  | [params: readonly Tensor[], options?: AdamWOptions]
  | [params: readonly Tensor[], lr: number, options?: AdamWOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: AdamWOptions];

/** Adam with decoupled weight decay (Loshchilov and Hutter, 2019). */
export class AdamW extends Optimizer {
  /** @internal */
  static override readonly shape: Shape = {
    id: "nn.optim.AdamW",
    tensors: [{ name: "lr" }, { name: "b1_t" }, { name: "b2_t" }],
    values: ["device", "b1", "b2", "eps", "weight_decay"],
    lists: true,
  };

  /** In a worker known after `ready()`. */
  get b1(): number {
    return this.plain("b1") as number;
  }

  /** In a worker known after `ready()`. */
  get b2(): number {
    return this.plain("b2") as number;
  }

  /** In a worker known after `ready()`. */
  get eps(): number {
    return this.plain("eps") as number;
  }

  /** In a worker known after `ready()`. */
  get weightDecay(): number {
    return this.plain("weight_decay") as number;
  }
  /** `weightDecay`, by its Python name. */
  declare weight_decay: AdamW["weightDecay"];

  get b1T(): Tensor {
    return this.attribute("b1_t");
  }

  set b1T(value: Tensor) {
    this.assign("b1_t", value);
  }
  /** `b1T`, by its Python name. */
  declare b1_t: AdamW["b1T"];

  get b2T(): Tensor {
    return this.attribute("b2_t");
  }

  set b2T(value: Tensor) {
    this.assign("b2_t", value);
  }
  /** `b2T`, by its Python name. */
  declare b2_t: AdamW["b2T"];

  /** A promise: how many there are is known when it has been made. */
  get m(): Promise<Tensor[]> {
    return this.list("m");
  }

  /** A promise: how many there are is known when it has been made. */
  get v(): Promise<Tensor[]> {
    return this.list("v");
  }
}
alias(AdamW.prototype, { weight_decay: "weightDecay", b1_t: "b1T", b2_t: "b2T" });

/** Arguments of `nn.optim.Adam` by name. */
export interface AdamOptions {
  /** 0.001 unless given. */ readonly lr?: number | undefined;
  /** 0.9 unless given. */ readonly b1?: number | undefined;
  /** 0.999 unless given. */ readonly b2?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  readonly device?: string | null | undefined;
}

export type AdamArguments =
  | [params: readonly Tensor[], options?: AdamOptions]
  | [params: readonly Tensor[], lr: number, options?: AdamOptions]
  | [params: readonly Tensor[], lr: number, b1: number, options?: AdamOptions];

/** Adam (Kingma and Ba, 2015): AdamW without weight decay. */
export class Adam extends AdamW {
  /** @internal */
  static override readonly shape: Shape = { ...AdamW.shape, id: "nn.optim.Adam" };
}

/** The layers. */
export interface Layers {
  /**
   * Batch normalisation over every axis but 1, with running statistics when not `Tensor.training`.
   *
   * 16-bit floats are normalised in float32; the result has the dtype of x and weight together.
   */
  readonly BatchNorm: Constructor<BatchNormArguments, BatchNorm>;
  /** conv2d with weight (out, in/groups, *kernel) and bias (out,); `padding` may be 'same' or 'valid'. */
  readonly Conv2d: Constructor<Conv2dArguments, Conv2d>;
  /** Rows of a table by integer: (...) to (..., embed_size). */
  readonly Embedding: Constructor<EmbeddingArguments, Embedding>;
  /** Normalisation of `num_groups` groups of the channels (axis 1), then weight and bias per channel. */
  readonly GroupNorm: Constructor<GroupNormArguments, GroupNorm>;
  /** Normalisation of each channel of each image by itself. */
  readonly InstanceNorm: Constructor<InstanceNormArguments, InstanceNorm>;
  /** Layer normalisation over the last axes, of shape `normalized_shape`, then weight and bias. */
  readonly LayerNorm: Constructor<LayerNormArguments, LayerNorm>;
  /**
   * x @ weightᵀ + bias: (..., in_features) to (..., out_features).
   *
   * Both start uniform in ±1/sqrt(in_features).
   */
  readonly Linear: Constructor<LinearArguments, Linear>;
  /** x / sqrt(mean(x²) + eps) over the last axis, times weight. Computed in float32. */
  readonly RMSNorm: Constructor<RMSNormArguments, RMSNorm>;
  /** `BatchNorm`, by another name. */
  readonly BatchNorm2d: Constructor<BatchNormArguments, BatchNorm>;
  /** `BatchNorm`, by another name. */
  readonly BatchNorm3d: Constructor<BatchNormArguments, BatchNorm>;
}

/** The optimizers. */
export interface Optimizers {
  /**
   * Stochastic gradient descent, with momentum (Nesterov's if asked), weight decay added to the gradient.
   *
   * `classic`: the learning rate scales the gradient before it is added to the momentum.
   */
  readonly SGD: Constructor<SGDArguments, SGD>;
  /** Adam with decoupled weight decay (Loshchilov and Hutter, 2019). */
  readonly AdamW: Constructor<AdamWArguments, AdamW>;
  /** Several optimizers as one. */
  readonly OptimizerGroup: Constructor<OptimizerGroupArguments, OptimizerGroup>;
  /** Adam (Kingma and Ba, 2015): AdamW without weight decay. */
  readonly Adam: Constructor<AdamArguments, Adam>;
}

/** @internal */
export const LAYERS = {
  BatchNorm,
  Conv2d,
  Embedding,
  GroupNorm,
  InstanceNorm,
  LayerNorm,
  Linear,
  RMSNorm,
  BatchNorm2d: BatchNorm,
  BatchNorm3d: BatchNorm,
};

/** @internal */
export const OPTIMIZERS = { SGD, AdamW, OptimizerGroup, Adam };
