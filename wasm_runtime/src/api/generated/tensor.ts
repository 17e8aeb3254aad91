// Generated from the API manifest by scripts/generate_api.mjs (`make api`): do not edit.

import {
  addPythonNames,
  callContext,
  callParts,
  callSelf,
  callTensor,
  callTensorOrPair,
  callTensors,
  callValue,
  callVoid,
} from "../calls";
import type { DType, DTypeName, DTypeOf, Scalar } from "../dtypes";
import type { TensorData } from "../make";
import type { FloatOf, Operated, ReducedDType, Undetermined, WithNumber } from "../result_dtypes";
import { owner } from "../handle";
import { TensorBase, type Operand, type Size } from "../tensor_base";

/** Arguments of `Tensor.code` by name. */
export interface CodeOptions {
  /** false unless given. */ readonly machine?: boolean | undefined;
}

/** Arguments of `Tensor.contiguous` by name. */
export interface ContiguousOptions {
  readonly opts?: string | null | undefined;
}

/** Arguments of `Tensor.clone` by name. */
export interface CloneOptions {
  readonly device?: string | null | undefined;
}

/** Arguments of `Tensor.gradient` by name. */
export interface GradientOptions {
  readonly gradient?: Tensor | null | undefined;
}

/** Arguments of `Tensor.backward` by name. */
export interface BackwardOptions {
  readonly gradient?: Tensor | null | undefined;
  /** false unless given. */ readonly retainGraph?: boolean | undefined;
  /** false unless given. */ readonly createGraph?: boolean | undefined;
}

/** Arguments of `Tensor.requiresGrad_` by name. */
export interface RequiresGradOptions {
  /** true unless given. */ readonly requiresGrad?: boolean | undefined;
}

/** Arguments of `Tensor.isParam_` by name. */
export interface IsParamOptions {
  /** true unless given. */ readonly isParam?: boolean | undefined;
}

/** Arguments of `Tensor.marginRankingLoss` by name. */
export interface MarginRankingLossOptions {
  /** 0 unless given. */ readonly margin?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.hingeEmbeddingLoss` by name. */
export interface HingeEmbeddingLossOptions {
  /** 1 unless given. */ readonly margin?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.cosineEmbeddingLoss` by name. */
export interface CosineEmbeddingLossOptions {
  /** 0 unless given. */ readonly margin?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.tripletMarginLoss` by name. */
export interface TripletMarginLossOptions {
  /** 1 unless given. */ readonly margin?: number | undefined;
  /** 2 unless given. */ readonly p?: number | undefined;
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** false unless given. */ readonly swap?: boolean | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.softMarginLoss` by name. */
export interface SoftMarginLossOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.multiMarginLoss` by name. */
export interface MultiMarginLossOptions {
  /** 1 unless given. */ readonly p?: number | undefined;
  /** 1 unless given. */ readonly margin?: number | undefined;
  readonly weight?: Tensor | null | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.multilabelMarginLoss` by name. */
export interface MultilabelMarginLossOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.multilabelSoftMarginLoss` by name. */
export interface MultilabelSoftMarginLossOptions {
  readonly weight?: Tensor | null | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.normalize` by name. */
export interface NormalizeOptions {
  /** 2 unless given. */ readonly p?: number | undefined;
  /** 1 unless given. */ readonly dim?: number | undefined;
  /** 1e-12 unless given. */ readonly eps?: number | undefined;
}

/** Arguments of `Tensor.layernorm` by name. */
export interface LayernormOptions {
  /** -1 unless given. */ readonly axis?: number | readonly number[] | undefined;
  /** 0.00001 unless given. */ readonly eps?: number | undefined;
}

/** Arguments of `Tensor.batchnorm` by name. */
export interface BatchnormOptions {
  /** 1 unless given. */ readonly axis?: number | readonly number[] | undefined;
}

/** Arguments of `Tensor.dropout` by name. */
export interface DropoutOptions {
  /** 0.5 unless given. */ readonly p?: number | undefined;
}

/** Arguments of `Tensor.alphaDropout` by name. */
export interface AlphaDropoutOptions {
  /** 0.5 unless given. */ readonly p?: number | undefined;
}

/** Arguments of `Tensor.featureAlphaDropout` by name. */
export interface FeatureAlphaDropoutOptions {
  /** 0.5 unless given. */ readonly p?: number | undefined;
}

/** Arguments of `Tensor.scaledDotProductAttention` by name. */
export interface ScaledDotProductAttentionOptions {
  readonly attnMask?: Tensor | null | undefined;
  /** 0 unless given. */ readonly dropoutP?: number | undefined;
  /** false unless given. */ readonly isCausal?: boolean | undefined;
  /** false unless given. */ readonly enableGqa?: boolean | undefined;
}

/** Arguments of `Tensor.interpolate` by name. */
export interface InterpolateOptions {
  readonly size?: number | readonly number[] | null | undefined;
  /** "linear" unless given. */ readonly mode?:
    "nearest" | "nearest-exact" | "linear" | "bilinear" | "trilinear" | undefined;
  /** false unless given. */ readonly alignCorners?: boolean | undefined;
  readonly scaleFactor?: number | readonly number[] | null | undefined;
}

/** Arguments of `Tensor.affineGrid` by name. */
export interface AffineGridOptions {
  /** false unless given. */ readonly alignCorners?: boolean | undefined;
}

/** Arguments of `Tensor.gridSample` by name. */
export interface GridSampleOptions {
  /** "bilinear" unless given. */ readonly mode?: "nearest" | "bilinear" | "bicubic" | undefined;
  /** "zeros" unless given. */ readonly paddingMode?: "zeros" | "border" | "reflection" | undefined;
  /** false unless given. */ readonly alignCorners?: boolean | undefined;
}

/** Arguments of `Tensor.maxPool2d` by name. */
export interface MaxPool2dOptions {
  /** [2,2] unless given. */ readonly kernelSize?: number | readonly number[] | undefined;
  readonly stride?: number | readonly number[] | null | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | undefined;
  /** false unless given. */ readonly ceilMode?: boolean | undefined;
  /** false unless given. */ readonly returnIndices?: boolean | undefined;
}

/** Arguments of `Tensor.maxUnpool2d` by name. */
export interface MaxUnpool2dOptions {
  /** [2,2] unless given. */ readonly kernelSize?: number | readonly number[] | undefined;
  readonly stride?: number | readonly number[] | null | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | undefined;
  readonly outputSize?: readonly number[] | null | undefined;
}

/** Arguments of `Tensor.avgPool2d` by name. */
export interface AvgPool2dOptions {
  /** [2,2] unless given. */ readonly kernelSize?: number | readonly number[] | undefined;
  readonly stride?: number | readonly number[] | null | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | undefined;
  /** false unless given. */ readonly ceilMode?: boolean | undefined;
  /** true unless given. */ readonly countIncludePad?: boolean | undefined;
}

/** Arguments of `Tensor.adaptiveMaxPool1d` by name. */
export interface AdaptiveMaxPool1dOptions {
  /** false unless given. */ readonly returnIndices?: boolean | undefined;
}

/** Arguments of `Tensor.adaptiveMaxPool2d` by name. */
export interface AdaptiveMaxPool2dOptions {
  /** false unless given. */ readonly returnIndices?: boolean | undefined;
}

/** Arguments of `Tensor.adaptiveMaxPool3d` by name. */
export interface AdaptiveMaxPool3dOptions {
  /** false unless given. */ readonly returnIndices?: boolean | undefined;
}

/** Arguments of `Tensor.conv2d` by name. */
export interface Conv2dOptions {
  readonly bias?: Tensor | null | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.convTranspose2d` by name. */
export interface ConvTranspose2dOptions {
  readonly bias?: Tensor | null | undefined;
  /** 1 unless given. */ readonly groups?: number | undefined;
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly padding?: number | readonly number[] | undefined;
  /** 0 unless given. */ readonly outputPadding?: number | readonly number[] | undefined;
}

/** Arguments of `Tensor.fftn` by name. */
export interface FftnOptions {
  readonly s?: readonly number[] | null | undefined;
  readonly dim?: number | readonly number[] | null | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.ifftn` by name. */
export interface IfftnOptions {
  readonly s?: readonly number[] | null | undefined;
  readonly dim?: number | readonly number[] | null | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.rfftn` by name. */
export interface RfftnOptions {
  readonly s?: readonly number[] | null | undefined;
  readonly dim?: number | readonly number[] | null | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.irfftn` by name. */
export interface IrfftnOptions {
  readonly s?: readonly number[] | null | undefined;
  readonly dim?: number | readonly number[] | null | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.fft2` by name. */
export interface Fft2Options {
  readonly s?: readonly number[] | null | undefined;
  /** [-2,-1] unless given. */ readonly dim?: readonly number[] | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.ifft2` by name. */
export interface Ifft2Options {
  readonly s?: readonly number[] | null | undefined;
  /** [-2,-1] unless given. */ readonly dim?: readonly number[] | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.rfft2` by name. */
export interface Rfft2Options {
  readonly s?: readonly number[] | null | undefined;
  /** [-2,-1] unless given. */ readonly dim?: readonly number[] | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.irfft2` by name. */
export interface Irfft2Options {
  readonly s?: readonly number[] | null | undefined;
  /** [-2,-1] unless given. */ readonly dim?: readonly number[] | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.hfft` by name. */
export interface HfftOptions {
  readonly n?: number | null | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.ihfft` by name. */
export interface IhfftOptions {
  readonly n?: number | null | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.fftfreq` by name. */
export interface FftfreqOptions {
  /** 1 unless given. */ readonly d?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
}

/** Arguments of `Tensor.rfftfreq` by name. */
export interface RfftfreqOptions {
  /** 1 unless given. */ readonly d?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
}

/** Arguments of `Tensor.fftshift` by name. */
export interface FftshiftOptions {
  readonly dim?: number | readonly number[] | null | undefined;
}

/** Arguments of `Tensor.ifftshift` by name. */
export interface IfftshiftOptions {
  readonly dim?: number | readonly number[] | null | undefined;
}

/** Arguments of `Tensor.stft` by name. */
export interface StftOptions {
  readonly hopLength?: number | null | undefined;
  readonly winLength?: number | null | undefined;
  readonly window?: Tensor | null | undefined;
  /** true unless given. */ readonly center?: boolean | undefined;
  /** "reflect" unless given. */ readonly padMode?: string | undefined;
  /** false unless given. */ readonly normalized?: boolean | undefined;
  /** true unless given. */ readonly onesided?: boolean | undefined;
}

/** Arguments of `Tensor.istft` by name. */
export interface IstftOptions {
  readonly hopLength?: number | null | undefined;
  readonly winLength?: number | null | undefined;
  readonly window?: Tensor | null | undefined;
  /** true unless given. */ readonly center?: boolean | undefined;
  /** false unless given. */ readonly normalized?: boolean | undefined;
  /** true unless given. */ readonly onesided?: boolean | undefined;
  readonly length?: number | null | undefined;
}

/** Arguments of `Tensor.fft` by name. */
export interface FftOptions {
  readonly n?: number | null | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.ifft` by name. */
export interface IfftOptions {
  readonly n?: number | null | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.rfft` by name. */
export interface RfftOptions {
  readonly n?: number | null | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.irfft` by name. */
export interface IrfftOptions {
  readonly n?: number | null | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** "backward" unless given. */ readonly norm?: "backward" | "ortho" | "forward" | undefined;
}

/** Arguments of `Tensor.keccak` by name. */
export interface KeccakOptions {
  /** "sha3_256" unless given. */ readonly cfg?: string | readonly number[] | undefined;
}

/** Arguments of `Tensor.cholesky` by name. */
export interface CholeskyOptions {
  /** false unless given. */ readonly upper?: boolean | undefined;
}

/** Arguments of `Tensor.choleskyEx` by name. */
export interface CholeskyExOptions {
  /** false unless given. */ readonly upper?: boolean | undefined;
  /** false unless given. */ readonly checkErrors?: boolean | undefined;
}

/** Arguments of `Tensor.qr` by name. */
export interface QrOptions {
  /** "reduced" unless given. */ readonly mode?: "reduced" | "complete" | undefined;
}

/** Arguments of `Tensor.svd` by name. */
export interface SvdOptions {
  /** true unless given. */ readonly fullMatrices?: boolean | undefined;
}

/** Arguments of `Tensor.newtonSchulz` by name. */
export interface NewtonSchulzOptions {
  /** 1e-7 unless given. */ readonly eps?: number | undefined;
}

/** Arguments of `Tensor.invEx` by name. */
export interface InvExOptions {
  /** false unless given. */ readonly checkErrors?: boolean | undefined;
}

/** Arguments of `Tensor.triangularSolve` by name. */
export interface TriangularSolveOptions {
  /** false unless given. */ readonly upper?: boolean | undefined;
}

/** Arguments of `Tensor.dot` by name. */
export interface DotOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.matmul` by name. */
export interface MatmulOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.mm` by name. */
export interface MmOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.bmm` by name. */
export interface BmmOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.mv` by name. */
export interface MvOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.linear` by name. */
export interface LinearOptions {
  readonly bias?: Tensor | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.einsum` by name. */
export interface EinsumOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.cross` by name. */
export interface CrossOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.trace` by name. */
export interface TraceOptions {
  /** 0 unless given. */ readonly offset?: number | undefined;
}

/** Arguments of `Tensor.cdist` by name. */
export interface CdistOptions {
  /** 2 unless given. */ readonly p?: number | undefined;
}

/** Arguments of `Tensor.vander` by name. */
export interface VanderOptions {
  readonly n?: number | null | undefined;
  /** false unless given. */ readonly increasing?: boolean | undefined;
}

/** Arguments of `Tensor.triu` by name. */
export interface TriuOptions {
  /** 0 unless given. */ readonly diagonal?: number | undefined;
}

/** Arguments of `Tensor.tril` by name. */
export interface TrilOptions {
  /** 0 unless given. */ readonly diagonal?: number | undefined;
}

/** Arguments of `Tensor.addmm` by name. */
export interface AddmmOptions {
  /** 1 unless given. */ readonly beta?: number | undefined;
  /** 1 unless given. */ readonly alpha?: number | undefined;
}

/** Arguments of `Tensor.baddbmm` by name. */
export interface BaddbmmOptions {
  /** 1 unless given. */ readonly beta?: number | undefined;
  /** 1 unless given. */ readonly alpha?: number | undefined;
}

/** Arguments of `Tensor.addmv` by name. */
export interface AddmvOptions {
  /** 1 unless given. */ readonly beta?: number | undefined;
  /** 1 unless given. */ readonly alpha?: number | undefined;
}

/** Arguments of `Tensor.dist` by name. */
export interface DistOptions {
  /** 2 unless given. */ readonly p?: number | undefined;
}

/** Arguments of `Tensor.pairwiseDistance` by name. */
export interface PairwiseDistanceOptions {
  /** 2 unless given. */ readonly p?: number | undefined;
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.cosineSimilarity` by name. */
export interface CosineSimilarityOptions {
  /** 1 unless given. */ readonly dim?: number | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
}

/** Arguments of `Tensor.crossEntropy` by name. */
export interface CrossEntropyOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
  /** 0 unless given. */ readonly labelSmoothing?: number | undefined;
  readonly weight?: Tensor | null | undefined;
  readonly ignoreIndex?: number | null | undefined;
}

/** Arguments of `Tensor.klDiv` by name. */
export interface KlDivOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | "batchmean" | undefined;
  /** false unless given. */ readonly logTarget?: boolean | undefined;
}

/** Arguments of `Tensor.huberLoss` by name. */
export interface HuberLossOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
  /** 1 unless given. */ readonly delta?: number | undefined;
}

/** Arguments of `Tensor.sparseCategoricalCrossentropy` by name. */
export interface SparseCategoricalCrossentropyOptions {
  /** -1 unless given. */ readonly ignoreIndex?: number | undefined;
  /** 0 unless given. */ readonly labelSmoothing?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.nllLoss` by name. */
export interface NllLossOptions {
  readonly weight?: Tensor | null | undefined;
  readonly ignoreIndex?: number | null | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.binaryCrossentropy` by name. */
export interface BinaryCrossentropyOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.binaryCrossEntropy` by name. */
export interface BinaryCrossEntropyOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.binaryCrossentropyLogits` by name. */
export interface BinaryCrossentropyLogitsOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
  readonly posWeight?: Tensor | null | undefined;
}

/** Arguments of `Tensor.binaryCrossEntropyWithLogits` by name. */
export interface BinaryCrossEntropyWithLogitsOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
  readonly posWeight?: Tensor | null | undefined;
}

/** Arguments of `Tensor.mseLoss` by name. */
export interface MseLossOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.l1Loss` by name. */
export interface L1LossOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.smoothL1Loss` by name. */
export interface SmoothL1LossOptions {
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
  /** 1 unless given. */ readonly beta?: number | undefined;
}

/** Arguments of `Tensor.gaussianNllLoss` by name. */
export interface GaussianNllLossOptions {
  /** false unless given. */ readonly full?: boolean | undefined;
  /** 0.000001 unless given. */ readonly eps?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.poissonNllLoss` by name. */
export interface PoissonNllLossOptions {
  /** true unless given. */ readonly logInput?: boolean | undefined;
  /** false unless given. */ readonly full?: boolean | undefined;
  /** 1e-8 unless given. */ readonly eps?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
}

/** Arguments of `Tensor.ctcLoss` by name. */
export interface CtcLossOptions {
  /** 0 unless given. */ readonly blank?: number | undefined;
  /** "mean" unless given. */ readonly reduction?: "mean" | "sum" | "none" | undefined;
  /** false unless given. */ readonly zeroInfinity?: boolean | undefined;
}

/** Arguments of `Tensor.sort` by name. */
export interface SortOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** false unless given. */ readonly descending?: boolean | undefined;
}

/** Arguments of `Tensor.argsort` by name. */
export interface ArgsortOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** false unless given. */ readonly descending?: boolean | undefined;
}

/** Arguments of `Tensor.quantile` by name. */
export interface QuantileOptions {
  readonly axis?: number | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  /** "linear" unless given. */ readonly interpolation?:
    "linear" | "lower" | "higher" | "nearest" | "midpoint" | undefined;
}

/** Arguments of `Tensor.median` by name. */
export interface MedianOptions {
  readonly axis?: number | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.kthvalue` by name. */
export interface KthvalueOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.mode` by name. */
export interface ModeOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.searchsorted` by name. */
export interface SearchsortedOptions {
  /** false unless given. */ readonly right?: boolean | undefined;
}

/** Arguments of `Tensor.bincount` by name. */
export interface BincountOptions {
  readonly weights?: Tensor | null | undefined;
  /** 0 unless given. */ readonly minlength?: number | undefined;
}

/** Arguments of `Tensor.histc` by name. */
export interface HistcOptions {
  /** 100 unless given. */ readonly bins?: number | undefined;
  /** 0 unless given. */ readonly min?: number | undefined;
  /** 0 unless given. */ readonly max?: number | undefined;
}

/** Arguments of `Tensor.topk` by name. */
export interface TopkOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
  /** true unless given. */ readonly largest?: boolean | undefined;
  /** true unless given. */ readonly sorted?: boolean | undefined;
}

/** Arguments of `Tensor.unbind` by name. */
export interface UnbindOptions {
  /** 0 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.maskedSelect` by name. */
export interface MaskedSelectOptions {
  readonly size?: number | null | undefined;
  /** 0 unless given. */ readonly fillValue?: Scalar | undefined;
}

/** Arguments of `Tensor.nonzero` by name. */
export interface NonzeroOptions {
  readonly size?: number | null | undefined;
  /** 0 unless given. */ readonly fillValue?: number | undefined;
}

/** Arguments of `Tensor.argwhere` by name. */
export interface ArgwhereOptions {
  readonly size?: number | null | undefined;
  /** 0 unless given. */ readonly fillValue?: number | undefined;
}

/** Arguments of `Tensor.takeAlongDim` by name. */
export interface TakeAlongDimOptions {
  readonly dim?: number | null | undefined;
}

/** Arguments of `Tensor.scatter` by name. */
export interface ScatterOptions {
  readonly reduce?: "add" | "multiply" | null | undefined;
}

/** Arguments of `Tensor.scatterReduce` by name. */
export interface ScatterReduceOptions {
  /** true unless given. */ readonly includeSelf?: boolean | undefined;
}

/** Arguments of `Tensor.indexAdd` by name. */
export interface IndexAddOptions {
  /** 1 unless given. */ readonly alpha?: number | undefined;
}

/** Arguments of `Tensor.manualSeed` by name. */
export interface ManualSeedOptions {
  /** 0 unless given. */ readonly seed?: number | undefined;
}

/** Arguments of `Tensor.rand` by name. */
export interface RandOptions {
  readonly device?: string | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
  /** true unless given. */ readonly contiguous?: boolean | undefined;
}

/** Arguments of `Tensor.randn` by name. */
export interface RandnOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
  readonly device?: string | null | undefined;
}

/** Arguments of `Tensor.randint` by name. */
export interface RandintOptions {
  /** 0 unless given. */ readonly low?: number | undefined;
  /** 10 unless given. */ readonly high?: number | undefined;
  /** "int32" unless given. */ readonly dtype?: DTypeName | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.normal` by name. */
export interface NormalOptions {
  /** 0 unless given. */ readonly mean?: number | undefined;
  /** 1 unless given. */ readonly std?: number | undefined;
  readonly requiresGrad?: boolean | null | undefined;
  readonly device?: string | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.uniform` by name. */
export interface UniformOptions {
  /** 0 unless given. */ readonly low?: number | undefined;
  /** 1 unless given. */ readonly high?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
  readonly device?: string | null | undefined;
}

/** Arguments of `Tensor.scaledUniform` by name. */
export interface ScaledUniformOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.glorotUniform` by name. */
export interface GlorotUniformOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.kaimingUniform` by name. */
export interface KaimingUniformOptions {
  /** 0.01 unless given. */ readonly a?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.kaimingNormal` by name. */
export interface KaimingNormalOptions {
  /** 0.01 unless given. */ readonly a?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.randLike` by name. */
export interface RandLikeOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.randnLike` by name. */
export interface RandnLikeOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.randperm` by name. */
export interface RandpermOptions {
  readonly device?: string | null | undefined;
  /** "int32" unless given. */ readonly dtype?: DTypeName | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.multinomial` by name. */
export interface MultinomialOptions {
  /** 1 unless given. */ readonly numSamples?: number | undefined;
  /** false unless given. */ readonly replacement?: boolean | undefined;
}

/** Arguments of `Tensor.cumsum` by name. */
export interface CumsumOptions {
  /** 0 unless given. */ readonly axis?: number | undefined;
}

/** Arguments of `Tensor.cummax` by name. */
export interface CummaxOptions {
  /** 0 unless given. */ readonly axis?: number | undefined;
}

/** Arguments of `Tensor.cummin` by name. */
export interface CumminOptions {
  /** 0 unless given. */ readonly axis?: number | undefined;
}

/** Arguments of `Tensor.logcumsumexp` by name. */
export interface LogcumsumexpOptions {
  /** 0 unless given. */ readonly axis?: number | undefined;
}

/** Arguments of `Tensor.diff` by name. */
export interface DiffOptions {
  /** 1 unless given. */ readonly n?: number | undefined;
  /** -1 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.leakyRelu` by name. */
export interface LeakyReluOptions {
  /** 0.01 unless given. */ readonly negSlope?: number | undefined;
}

/** Arguments of `Tensor.hardtanh` by name. */
export interface HardtanhOptions {
  /** -1 unless given. */ readonly minVal?: number | undefined;
  /** 1 unless given. */ readonly maxVal?: number | undefined;
}

/** Arguments of `Tensor.hardsigmoid` by name. */
export interface HardsigmoidOptions {
  /** 0.16666666666666666 unless given. */ readonly alpha?: number | undefined;
  /** 0.5 unless given. */ readonly beta?: number | undefined;
}

/** Arguments of `Tensor.gelu` by name. */
export interface GeluOptions {
  /** "tanh" unless given. */ readonly approximate?: "tanh" | "none" | undefined;
}

/** Arguments of `Tensor.elu` by name. */
export interface EluOptions {
  /** 1 unless given. */ readonly alpha?: number | undefined;
}

/** Arguments of `Tensor.celu` by name. */
export interface CeluOptions {
  /** 1 unless given. */ readonly alpha?: number | undefined;
}

/** Arguments of `Tensor.selu` by name. */
export interface SeluOptions {
  /** 1.6732632423543772 unless given. */ readonly alpha?: number | undefined;
  /** 1.0507009873554805 unless given. */ readonly gamma?: number | undefined;
}

/** Arguments of `Tensor.softplus` by name. */
export interface SoftplusOptions {
  /** 1 unless given. */ readonly beta?: number | undefined;
}

/** Arguments of `Tensor.hardshrink` by name. */
export interface HardshrinkOptions {
  /** 0.5 unless given. */ readonly lambd?: number | undefined;
}

/** Arguments of `Tensor.softshrink` by name. */
export interface SoftshrinkOptions {
  /** 0.5 unless given. */ readonly lambd?: number | undefined;
}

/** Arguments of `Tensor.softmax` by name. */
export interface SoftmaxOptions {
  /** -1 unless given. */ readonly axis?: number | readonly number[] | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.logSoftmax` by name. */
export interface LogSoftmaxOptions {
  /** -1 unless given. */ readonly axis?: number | readonly number[] | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.softmin` by name. */
export interface SoftminOptions {
  /** -1 unless given. */ readonly axis?: number | readonly number[] | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.glu` by name. */
export interface GluOptions {
  /** -1 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.sum` by name. */
export interface SumOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.nansum` by name. */
export interface NansumOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.prod` by name. */
export interface ProdOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.max` by name. */
export interface MaxOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.amax` by name. */
export interface AmaxOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.min` by name. */
export interface MinOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.amin` by name. */
export interface AminOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.aminmax` by name. */
export interface AminmaxOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.any` by name. */
export interface AnyOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.all` by name. */
export interface AllOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.countNonzero` by name. */
export interface CountNonzeroOptions {
  readonly axis?: number | readonly number[] | null | undefined;
}

/** Arguments of `Tensor.logsumexp` by name. */
export interface LogsumexpOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.isclose` by name. */
export interface IscloseOptions {
  /** 0.00001 unless given. */ readonly rtol?: number | undefined;
  /** 1e-8 unless given. */ readonly atol?: number | undefined;
  /** false unless given. */ readonly equalNan?: boolean | undefined;
}

/** Arguments of `Tensor.allclose` by name. */
export interface AllcloseOptions {
  /** 0.00001 unless given. */ readonly rtol?: number | undefined;
  /** 1e-8 unless given. */ readonly atol?: number | undefined;
  /** false unless given. */ readonly equalNan?: boolean | undefined;
}

/** Arguments of `Tensor.norm` by name. */
export interface NormOptions {
  /** 2 unless given. */ readonly p?: number | undefined;
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.mean` by name. */
export interface MeanOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.nanmean` by name. */
export interface NanmeanOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.var` by name. */
export interface VarOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  /** 1 unless given. */ readonly correction?: number | undefined;
}

/** Arguments of `Tensor.varMean` by name. */
export interface VarMeanOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  /** 1 unless given. */ readonly correction?: number | undefined;
}

/** Arguments of `Tensor.std` by name. */
export interface StdOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  /** 1 unless given. */ readonly correction?: number | undefined;
}

/** Arguments of `Tensor.stdMean` by name. */
export interface StdMeanOptions {
  readonly axis?: number | readonly number[] | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
  /** 1 unless given. */ readonly correction?: number | undefined;
}

/** Arguments of `Tensor.argmax` by name. */
export interface ArgmaxOptions {
  readonly axis?: number | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.argmin` by name. */
export interface ArgminOptions {
  readonly axis?: number | null | undefined;
  /** false unless given. */ readonly keepdim?: boolean | undefined;
}

/** Arguments of `Tensor.pad` by name. */
export interface PadOptions {
  /** "constant" unless given. */ readonly mode?:
    "constant" | "reflect" | "replicate" | "circular" | undefined;
  /** 0 unless given. */ readonly value?: Scalar | undefined;
}

/** Arguments of `Tensor.padTo` by name. */
export interface PadToOptions {
  /** 0 unless given. */ readonly value?: Scalar | undefined;
}

/** Arguments of `Tensor.cat` by name. */
export interface CatOptions {
  /** 0 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.stack` by name. */
export interface StackOptions {
  /** 0 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.split` by name. */
export interface SplitOptions {
  /** 0 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.chunk` by name. */
export interface ChunkOptions {
  /** 0 unless given. */ readonly dim?: number | undefined;
}

/** Arguments of `Tensor.repeatInterleave` by name. */
export interface RepeatInterleaveOptions {
  readonly dim?: number | null | undefined;
}

/** Arguments of `Tensor.roll` by name. */
export interface RollOptions {
  readonly dims?: number | readonly number[] | null | undefined;
}

/** Arguments of `Tensor.meshgrid` by name. */
export interface MeshgridOptions {
  /** "ij" unless given. */ readonly indexing?: "ij" | "xy" | undefined;
}

/** Arguments of `Tensor.transpose` by name. */
export interface TransposeOptions {
  /** 1 unless given. */ readonly dim0?: number | undefined;
  /** 0 unless given. */ readonly dim1?: number | undefined;
}

/** Arguments of `Tensor.swapaxes` by name. */
export interface SwapaxesOptions {
  /** 1 unless given. */ readonly dim0?: number | undefined;
  /** 0 unless given. */ readonly dim1?: number | undefined;
}

/** Arguments of `Tensor.swapdims` by name. */
export interface SwapdimsOptions {
  /** 1 unless given. */ readonly dim0?: number | undefined;
  /** 0 unless given. */ readonly dim1?: number | undefined;
}

/** Arguments of `Tensor.rot90` by name. */
export interface Rot90Options {
  /** 1 unless given. */ readonly k?: number | undefined;
  /** [0,1] unless given. */ readonly dims?: readonly number[] | undefined;
}

/** Arguments of `Tensor.squeeze` by name. */
export interface SqueezeOptions {
  readonly dim?: number | null | undefined;
}

/** Arguments of `Tensor.flatten` by name. */
export interface FlattenOptions {
  /** 0 unless given. */ readonly startDim?: number | undefined;
  /** -1 unless given. */ readonly endDim?: number | undefined;
}

/** Arguments of `Tensor.diagonal` by name. */
export interface DiagonalOptions {
  /** 0 unless given. */ readonly offset?: number | undefined;
  /** 0 unless given. */ readonly dim1?: number | undefined;
  /** 1 unless given. */ readonly dim2?: number | undefined;
}

/** Arguments of `Tensor.pool` by name. */
export interface PoolOptions {
  /** 1 unless given. */ readonly stride?: number | readonly number[] | undefined;
  /** 1 unless given. */ readonly dilation?: number | readonly number[] | undefined;
}

/** Arguments of `Tensor.logit` by name. */
export interface LogitOptions {
  readonly eps?: number | null | undefined;
}

/** Arguments of `Tensor.clamp` by name. */
export interface ClampOptions {
  readonly min?: Operand | null | undefined;
  readonly max?: Operand | null | undefined;
}

/** Arguments of `Tensor.clip` by name. */
export interface ClipOptions {
  readonly min?: Operand | null | undefined;
  readonly max?: Operand | null | undefined;
}

/** Arguments of `Tensor.nanToNum` by name. */
export interface NanToNumOptions {
  /** 0 unless given. */ readonly nan?: number | undefined;
  readonly posinf?: number | null | undefined;
  readonly neginf?: number | null | undefined;
}

/** Arguments of `Tensor.isinf` by name. */
export interface IsinfOptions {
  /** true unless given. */ readonly detectPositive?: boolean | undefined;
  /** true unless given. */ readonly detectNegative?: boolean | undefined;
}

/** Arguments of `Tensor.div` by name. */
export interface DivOptions {
  readonly roundingMode?: "trunc" | "floor" | null | undefined;
}

/** Arguments of `Tensor.divide` by name. */
export interface DivideOptions {
  readonly roundingMode?: "trunc" | "floor" | null | undefined;
}

/** Arguments of `Tensor.trueDivide` by name. */
export interface TrueDivideOptions {
  readonly roundingMode?: "trunc" | "floor" | null | undefined;
}

/** Arguments of `Tensor.addcmul` by name. */
export interface AddcmulOptions {
  /** 1 unless given. */ readonly value?: number | undefined;
}

/** Arguments of `Tensor.addcdiv` by name. */
export interface AddcdivOptions {
  /** 1 unless given. */ readonly value?: number | undefined;
}

/** Arguments of `Tensor.const` by name. */
export interface ConstOptions {
  readonly dtype?: DTypeName | null | undefined;
}

/** Arguments of `Tensor.zeros` by name. */
export interface ZerosOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.ones` by name. */
export interface OnesOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.empty` by name. */
export interface EmptyOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.fullLike` by name. */
export interface FullLikeOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.zerosLike` by name. */
export interface ZerosLikeOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.onesLike` by name. */
export interface OnesLikeOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.emptyLike` by name. */
export interface EmptyLikeOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.arange` by name. */
export interface ArangeOptions {
  readonly stop?: Size | number | null | undefined;
  /** 1 unless given. */ readonly step?: number | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.linspace` by name. */
export interface LinspaceOptions {
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.eye` by name. */
export interface EyeOptions {
  readonly m?: number | null | undefined;
  readonly dtype?: DTypeName | null | undefined;
  readonly device?: string | null | undefined;
  readonly requiresGrad?: boolean | null | undefined;
}

/** Arguments of `Tensor.cast` by name. */
export interface CastOptions {
  readonly saturate?: boolean | null | undefined;
}

/**
 * A lazy n-dimensional array with gradients: nothing is computed before `data`, `item`, `tolist` or `realize` asks.
 *
 * ```js
 * await new Tensor([[1, 2], [3, 4]]).add(1).tolist(); // [[2, 3], [4, 5]]
 * ```
 */
export class Tensor<D extends DType = DType> extends TensorBase<D> {
  /**
   * The last two axes swapped: each matrix of a batch transposed.
   *
   * ```js
   * await new Tensor([[[1, 2], [3, 4]]]).mT.tolist(); // [[[1, 3], [2, 4]]]
   * ```
   */
  get mT(): Tensor {
    return callTensor(this[owner], "$get", [this, "mT"]);
  }

  /**
   * The matrix transposed.
   *
   * The last two axes, as tinygrad's; torch's `T` reverses all axes: `permute(2, 1, 0)`.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).T.tolist(); // [[1, 3], [2, 4]]
   * ```
   */
  get T(): Tensor<D> {
    return callTensor(this[owner], "$get", [this, "T"]);
  }

  /**
   * Compute this Tensor and `others` now, in one Program, and carry out writes to them; returns this.
   *
   * A view of stored memory stays a view of it. Throws DeviceError, OutOfMemoryError, CompileError.
   *
   * ```js
   * await new Tensor([1, 2]).add(1).realize().tolist(); // [2, 3]
   * ```
   */
  realize(...others: Tensor[]): this {
    return callSelf(this, "Tensor.realize", [...others]);
  }

  /**
   * The code that computes this Tensor, as text: Programs with their buffers and launches, and for each
   * kernel its Opts, its work and its source (LLVM IR, C, WebAssembly, WGSL, CUDA, Metal, Python).
   *
   * `machine`: include the assembly of the processor (CPU, CC) or PTX (CUDA). Nothing is computed or
   * changed. Throws DeviceError, CompileError.
   *
   * ```js
   * (await new Tensor([1, 2]).add(1).code()).includes("1 kernel"); // true
   * ```
   */
  code(...args: [options?: CodeOptions] | [machine: boolean, options?: CodeOptions]): Promise<string> {
    return callValue(this[owner], "Tensor.code", [this, ...args]);
  }

  /**
   * These elements, stored in order and without gaps when they are computed: a view if they are
   * contiguous already, else a copy.
   *
   * `opts` always makes a copy, and determines how its kernel is optimised, instead of the compiler's
   * choice: `"SIMD r1 16 4, UPCAST r0 6"`. The kinds are in `polygrad/codegen/opts/opt.py`; DEBUG=3 prints
   * the chosen Opts. Devices that do not optimise ignore them. Throws ArgumentError if the text is not a
   * list of Opts; OptError, when the kernel is made, for an Opt that does not apply to it.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).T.contiguous().tolist(); // [[1, 3], [2, 4]]
   * ```
   */
  contiguous(
    ...args: [options?: ContiguousOptions] | [opts: string | null, options?: ContiguousOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.contiguous", [this, ...args]);
  }

  /**
   * this. It exists for compatibility: gradients need no hint where they are stored.
   *
   * ```js
   * await new Tensor([1, 2]).contiguousBackward().tolist(); // [1, 2]
   * ```
   */
  contiguousBackward(): this {
    return callSelf(this, "Tensor.contiguous_backward", []);
  }

  /**
   * A copy in memory of its own; the gradient flows through it.
   *
   * ```js
   * await new Tensor([1, 2]).clone().tolist(); // [1, 2]
   * ```
   */
  clone(...args: [options?: CloneOptions] | [device: string | null, options?: CloneOptions]): Tensor<D> {
    return callTensor(this[owner], "Tensor.clone", [this, ...args]);
  }

  /**
   * This value, cut from gradients: a view.
   *
   * ```js
   * await new Tensor([1, 2]).detach().tolist(); // [1, 2]
   * ```
   */
  detach(): Tensor<D> {
    return callTensor(this[owner], "Tensor.detach", [this]);
  }

  /**
   * This value on `device`, or a copy on each of several; this if it is there already.
   *
   * Throws DeviceError for one this host does not have.
   *
   * ```js
   * (await new Tensor([1, 2]).to("INTERP").ready()).device; // "INTERP"
   * ```
   */
  to(device: string | null): Tensor<D> {
    return callTensor(this[owner], "Tensor.to", [this, device]);
  }

  /**
   * Move this Tensor to `device`; returns this. Views of it stay where they are.
   *
   * ```js
   * (await new Tensor([1, 2]).to_("INTERP").ready()).device; // "INTERP"
   * ```
   */
  to_(device: string | null): this {
    return callSelf(this, "Tensor.to_", [device]);
  }

  /**
   * Become `x`, of the same shape and dtype, and share its memory; nothing is written. Returns this.
   *
   * ```js
   * const t = new Tensor([0, 0], { dtype: "int32" });
   * await t.replace(new Tensor([1, 2], { dtype: "int32" })).tolist(); // [1, 2]
   * ```
   */
  replace(x: Tensor): this {
    return callSelf(this, "Tensor.replace", [x]);
  }

  /**
   * Write the value of `x`, of this shape, dtype and device, to these elements; returns this.
   *
   * All views of the same memory see the write. Stored memory is written in place, when it is next
   * computed; values computed from it earlier do not change. Throws ShapeError, DTypeError, DeviceError,
   * and ArgumentError for a view that shows an element twice (an expanded one).
   *
   * ```js
   * const t = Tensor.zeros(3);
   * await t.assign(new Tensor([1, 2, 3])).tolist(); // [1, 2, 3]
   * ```
   */
  assign(x: TensorData): this {
    return callSelf(this, "Tensor.assign", [x]);
  }

  /**
   * Run `run`; the first NaN in a result, or in a gradient, is an AnomalyError that names the operation.
   *
   * Every operation is computed at once and looked at, so it is slow. A function that is captured inside is
   * looked at after each of its runs.
   *
   * ```js
   * const found = Tensor.detectAnomaly(async () => new Tensor([1, -1]).log().tolist());
   * await found.catch((error) => error.name); // "AnomalyError"
   * ```
   */
  static detectAnomaly<T>(run: () => T): T {
    return callContext(this.bound, "Tensor.detect_anomaly", run, []);
  }

  /**
   * The gradient of this Tensor with respect to each target, lazy and differentiable again.
   *
   * `gradient` is the incoming gradient, of this Tensor's shape; it is needed unless this Tensor is a
   * scalar. The gradient is 0 for a target that this Tensor does not depend on, or only through integers
   * or `detach`. A value that was computed before a write has the gradient at the old values. A gradient
   * that is constant, or piecewise constant (of `abs`, `relu`, `where`), is data: it has
   * `requiresGrad: false`.
   *
   * Throws ShapeError, and GradientError where there is no graph to differentiate: a result is data once
   * it is computed, unless one of its inputs has `requiresGrad: true`.
   *
   * ```js
   * const x = new Tensor([1, 2]);
   * await Promise.all(x.mul(x).sum().gradient(x).map((t) => t.tolist())); // [[2, 4]]
   * ```
   */
  gradient(...args: [...targets: Tensor[]] | [...targets: Tensor[], options: GradientOptions]): Tensor[] {
    return callTensors(this[owner], "Tensor.gradient", [this, ...args], "arguments");
  }

  /**
   * Add the gradient of this Tensor to `.grad` of every leaf that it depends on; returns this.
   *
   * `gradient` is the incoming gradient, of this Tensor's shape; it is needed unless this Tensor is a
   * scalar. Leaves are the Tensors with `requiresGrad: true` that were not computed from others, as the
   * parameters of layers. As in tinygrad, live float Tensors with `requiresGrad: null`, except constants,
   * are leaves too. A result of leaves with `requiresGrad: true` keeps its graph, whatever is read or
   * written later. A result of Tensors with null is data, and a leaf, once it is computed.
   *
   * The gradient is taken at the values that this Tensor was computed from. When memory is overwritten,
   * these values are kept for results that may still be differentiated. They are not kept for results
   * that `backward` has visited: a second `backward` is then an error, unless the first had
   * `retainGraph: true`. `createGraph: true`: the gradients themselves can be differentiated (it implies
   * `retainGraph`). Throws ShapeError, and GradientError where this Tensor depends on no leaf.
   *
   * ```js
   * const x = new Tensor([1, 2], { requiresGrad: true });
   * await x.mul(x).sum().backward().item(); // 5
   * await x.grad.tolist(); // [2, 4]
   * ```
   */
  backward(
    ...args: [options?: BackwardOptions] | [gradient: Tensor | null, options?: BackwardOptions]
  ): this {
    return callSelf(this, "Tensor.backward", [...args]);
  }

  /**
   * Let `backward` fill `.grad` of this Tensor although it is not a leaf; returns this.
   *
   * ```js
   * const w = new Tensor([1, 2], { requiresGrad: true });
   * const y = w.mul(2).retainGrad();
   * y.mul(y).sum().backward();
   * await y.grad.tolist(); // [4, 8]
   * ```
   */
  retainGrad(): this {
    return callSelf(this, "Tensor.retain_grad", []);
  }

  /**
   * Set `requiresGrad`; returns this.
   *
   * ```js
   * (await new Tensor([1]).requiresGrad_().ready()).requiresGrad; // true
   * ```
   */
  requiresGrad_(
    ...args: [options?: RequiresGradOptions] | [requiresGrad: boolean, options?: RequiresGradOptions]
  ): this {
    return callSelf(this, "Tensor.requires_grad_", [...args]);
  }

  /**
   * `requiresGrad_`, by tinygrad's newer name.
   *
   * ```js
   * (await new Tensor([1]).isParam_().ready()).requiresGrad; // true
   * ```
   */
  isParam_(...args: [options?: IsParamOptions] | [isParam: boolean, options?: IsParamOptions]): this {
    return callSelf(this, "Tensor.is_param_", [...args]);
  }

  /**
   * A leaf of this value that requires a gradient, in memory of its own. Throws GradientError.
   *
   * ```js
   * const weight = new Tensor([1, 2]).asParam();
   * await weight.mul(weight).sum().backward().item(); // 5
   * await weight.grad.tolist(); // [2, 4]
   * ```
   */
  asParam(): Tensor<D> {
    return callTensor(this[owner], "Tensor.as_param", [this]);
  }

  /**
   * Run `run` without gradients: what it computes is cut from them, as by `detach`. It has `requiresGrad: false`,
   * and keeps no graph.
   *
   * ```js
   * const x = new Tensor([1], { requiresGrad: true });
   * const y = Tensor.noGrad(() => x.mul(2));
   * await x.mul(y).sum().backward().item(); // 2
   * await x.grad.tolist(); // [2]
   * ```
   */
  static noGrad<T>(run: () => T): T {
    return callContext(this.bound, "Tensor.no_grad", run, []);
  }

  /**
   * Run `run` without gradients: what it computes is cut from them, as by `detach`. It has `requiresGrad: false`,
   * and keeps no graph. The same as `noGrad`.
   *
   * ```js
   * const x = new Tensor([1], { requiresGrad: true });
   * const y = Tensor.inferenceMode(() => x.mul(2));
   * await x.mul(y).sum().backward().item(); // 2
   * await x.grad.tolist(); // [2]
   * ```
   */
  static inferenceMode<T>(run: () => T): T {
    return callContext(this.bound, "Tensor.inference_mode", run, []);
  }

  /**
   * The reverse of `noGrad`, for use within it.
   *
   * ```js
   * const x = new Tensor([1], { requiresGrad: true });
   * const y = Tensor.noGrad(() => Tensor.enableGrad(() => x.mul(2)));
   * (await y.ready()).requiresGrad; // true
   * ```
   */
  static enableGrad<T>(run: () => T): T {
    return callContext(this.bound, "Tensor.enable_grad", run, []);
  }

  /**
   * Whether this thread records gradients, that is, executes no `noGrad` block.
   *
   * ```js
   * await Tensor.isGradEnabled(); // true
   * ```
   */
  static isGradEnabled(): Promise<boolean> {
    return callValue(this.bound, "Tensor.is_grad_enabled", []);
  }

  /**
   * max(0, margin - Y (this - other)): this is to be greater where Y is 1, less where it is -1.
   *
   * Throws ArgumentError.
   *
   * ```js
   * await new Tensor([1, 3]).marginRankingLoss(new Tensor([2, 1]), new Tensor([1, 1])).item(); // 0.5
   * ```
   */
  marginRankingLoss(
    ...args:
      | [other: Tensor, Y: Tensor, options?: MarginRankingLossOptions]
      | [other: Tensor, Y: Tensor, margin: number, options?: MarginRankingLossOptions]
      | [
          other: Tensor,
          Y: Tensor,
          margin: number,
          reduction: "mean" | "sum" | "none",
          options?: MarginRankingLossOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.margin_ranking_loss", [this, ...args]);
  }

  /**
   * These distances where Y is 1, and max(0, margin - this) where it is -1. Throws ShapeError.
   *
   * ```js
   * await new Tensor([0.5, 0.25]).hingeEmbeddingLoss(new Tensor([1, -1])).item(); // 0.625
   * ```
   */
  hingeEmbeddingLoss(
    ...args:
      | [Y: Tensor, options?: HingeEmbeddingLossOptions]
      | [Y: Tensor, margin: number, options?: HingeEmbeddingLossOptions]
      | [Y: Tensor, margin: number, reduction: "mean" | "sum" | "none", options?: HingeEmbeddingLossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.hinge_embedding_loss", [this, ...args]);
  }

  /**
   * 1 - c where Y is 1, and max(0, c - margin) where it is -1, for c the cosine along the last axis.
   *
   * Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1, 0]]).cosineEmbeddingLoss(new Tensor([[0, 2]]), new Tensor([1])).item(); // 1
   * ```
   */
  cosineEmbeddingLoss(
    ...args:
      | [other: Tensor, Y: Tensor, options?: CosineEmbeddingLossOptions]
      | [other: Tensor, Y: Tensor, margin: number, options?: CosineEmbeddingLossOptions]
      | [
          other: Tensor,
          Y: Tensor,
          margin: number,
          reduction: "mean" | "sum" | "none",
          options?: CosineEmbeddingLossOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.cosine_embedding_loss", [this, ...args]);
  }

  /**
   * max(0, d(this, positive) - d(this, negative) + margin), d being `pairwiseDistance`.
   *
   * `swap`: the distance of `positive` from `negative` counts, where it is less (Balntas et al., 2016).
   *
   * ```js
   * const a = new Tensor([[0, 0]]);
   * await a.tripletMarginLoss(new Tensor([[3, 4]]), new Tensor([[0, 5.5]]), { eps: 0 }).item(); // 0.5
   * ```
   */
  tripletMarginLoss(
    ...args:
      | [positive: Tensor, negative: Tensor, options?: TripletMarginLossOptions]
      | [positive: Tensor, negative: Tensor, margin: number, options?: TripletMarginLossOptions]
      | [positive: Tensor, negative: Tensor, margin: number, p: number, options?: TripletMarginLossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.triplet_margin_loss", [this, ...args]);
  }

  /**
   * log(1 + exp(-Y this)), for Y of 1 and -1. Throws ShapeError.
   *
   * ```js
   * await new Tensor([0]).softMarginLoss(new Tensor([1])).item(); // ≈ 0.69314
   * ```
   */
  softMarginLoss(
    ...args:
      | [Y: Tensor, options?: SoftMarginLossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: SoftMarginLossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.soft_margin_loss", [this, ...args]);
  }

  /**
   * The sum of max(0, margin - this[Y] + this[i])^p over the classes i but Y, divided by their number.
   *
   * The number is torch's, which counts Y.
   *
   * Shapes: this (n, classes) or (classes), Y (n) or () integers, weight (classes). `p`: 1 or 2.
   * Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[0.5, 1, 2]]).multiMarginLoss(new Tensor([2], { dtype: "int32" })).item(); // 0
   * ```
   */
  multiMarginLoss(
    ...args:
      | [Y: Tensor, options?: MultiMarginLossOptions]
      | [Y: Tensor, p: number, options?: MultiMarginLossOptions]
      | [Y: Tensor, p: number, margin: number, options?: MultiMarginLossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.multi_margin_loss", [this, ...args]);
  }

  /**
   * The sum of max(0, 1 - this[y] + this[i]) over classes y of Y and others i, divided by their number.
   *
   * Shapes: this and Y (n, classes) or (classes). The classes of a row are those before the first -1.
   * Throws ShapeError, DTypeError.
   *
   * ```js
   * await new Tensor([0.1, 0.2, 0.4, 0.8]).multilabelMarginLoss(new Tensor([3, 0, -1, 1], { dtype: "int32" })).item(); // ≈ 0.85
   * ```
   */
  multilabelMarginLoss(
    ...args:
      | [Y: Tensor, options?: MultilabelMarginLossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: MultilabelMarginLossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.multilabel_margin_loss", [this, ...args]);
  }

  /**
   * The mean over the last axis of the cross-entropy of sigmoid(this) with Y (0 and 1).
   *
   * `weight`: of each class. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[0, 0]]).multilabelSoftMarginLoss(new Tensor([[1, 0]])).item(); // ≈ 0.69314
   * ```
   */
  multilabelSoftMarginLoss(
    ...args:
      | [Y: Tensor, options?: MultilabelSoftMarginLossOptions]
      | [Y: Tensor, weight: Tensor | null, options?: MultilabelSoftMarginLossOptions]
      | [
          Y: Tensor,
          weight: Tensor | null,
          reduction: "mean" | "sum" | "none",
          options?: MultilabelSoftMarginLossOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.multilabel_soft_margin_loss", [this, ...args]);
  }

  /**
   * this / max(its p-norm along `dim`, eps).
   *
   * ```js
   * await new Tensor([[0, 4]]).normalize().tolist(); // [[0, 1]]
   * ```
   */
  normalize(
    ...args:
      | [options?: NormalizeOptions]
      | [p: number, options?: NormalizeOptions]
      | [p: number, dim: number, options?: NormalizeOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.normalize", [this, ...args]);
  }

  /**
   * this with mean 0 and variance 1 (biased) along `axis`.
   *
   * ```js
   * await new Tensor([1, 3]).layernorm({ eps: 0 }).tolist(); // [-1, 1]
   * ```
   */
  layernorm(
    ...args:
      | [options?: LayernormOptions]
      | [axis: number | readonly number[], options?: LayernormOptions]
      | [axis: number | readonly number[], eps: number, options?: LayernormOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.layernorm", [this, ...args]);
  }

  /**
   * (this - mean) * invstd * weight + bias, each of them along `axis`.
   *
   * ```js
   * await new Tensor([[1, 4]]).batchnorm(null, null, new Tensor([0, 2]), new Tensor([1, 0.5])).tolist(); // [[1, 1]]
   * ```
   */
  batchnorm(
    ...args:
      | [weight: Tensor | null, bias: Tensor | null, mean: Tensor, invstd: Tensor, options?: BatchnormOptions]
      | [
          weight: Tensor | null,
          bias: Tensor | null,
          mean: Tensor,
          invstd: Tensor,
          axis: number | readonly number[],
          options?: BatchnormOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.batchnorm", [this, ...args]);
  }

  /**
   * In training (`Tensor.train()`), zeros with probability `p`, the rest scaled by 1 / (1 - p).
   *
   * Throws ArgumentError.
   *
   * torch.nn.functional's is in training by default.
   *
   * ```js
   * await new Tensor([1, 2]).dropout(0.5).tolist(); // [1, 2]
   * ```
   */
  dropout(...args: [options?: DropoutOptions] | [p: number, options?: DropoutOptions]): Tensor<D> {
    return callTensor(this[owner], "Tensor.dropout", [this, ...args]);
  }

  /**
   * Dropout that keeps mean and variance behind `selu` (Klambauer et al., 2017): in training,
   * elements become selu's least value with probability `p`, and all are scaled and shifted.
   *
   * Throws ArgumentError.
   *
   * ```js
   * await new Tensor([1, 2]).alphaDropout(0.5).tolist(); // [1, 2]
   * ```
   */
  alphaDropout(
    ...args: [options?: AlphaDropoutOptions] | [p: number, options?: AlphaDropoutOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.alpha_dropout", [this, ...args]);
  }

  /**
   * `alphaDropout` of whole channels: what axes 0 and 1 count. Throws ArgumentError, ShapeError.
   *
   * ```js
   * await new Tensor([[1, 2]]).featureAlphaDropout(0.5).tolist(); // [[1, 2]]
   * ```
   */
  featureAlphaDropout(
    ...args: [options?: FeatureAlphaDropoutOptions] | [p: number, options?: FeatureAlphaDropoutOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.feature_alpha_dropout", [this, ...args]);
  }

  /**
   * softmax(this · keyᵀ / sqrt(d) + mask) · value, over the last two axes.
   *
   * Shapes: this (..., L, d), key (..., S, d), value (..., S, v).
   *
   * `attnMask`: bool (true attends) or float (added), broadcast to (..., L, S). `isCausal`: row i sees
   * columns up to i, and most of the others are not computed. `enableGqa`: keys and values are
   * repeated along axis -3 to match. A row that attends to nothing is 0, as torch's (tinygrad's is NaN).
   * Throws ArgumentError, ShapeError.
   *
   * ```js
   * const q = new Tensor([[0, 0]]);
   * await q.scaledDotProductAttention(Tensor.zeros(2, 2), new Tensor([[1], [3]])).tolist(); // [[2]]
   * ```
   */
  scaledDotProductAttention(
    ...args:
      | [key: Tensor, value: Tensor, options?: ScaledDotProductAttentionOptions]
      | [key: Tensor, value: Tensor, attnMask: Tensor | null, options?: ScaledDotProductAttentionOptions]
      | [
          key: Tensor,
          value: Tensor,
          attnMask: Tensor | null,
          dropoutP: number,
          options?: ScaledDotProductAttentionOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.scaled_dot_product_attention", [this, ...args]);
  }

  /**
   * The last axes resized to `size`, or by `scaleFactor`: a number for each of them.
   *
   * A single number applies to all axes of an image except the first two (n, channels).
   *
   * `mode`: 'nearest', 'nearest-exact', 'linear' ('bilinear' and 'trilinear' say the same), 'bicubic' (of
   * two axes; Keys, 1981, with a = -0.75). Positions are torch's; with `alignCorners` (linear, bicubic)
   * the first and the last elements stay where they are. Throws ArgumentError, ShapeError.
   *
   * `mode` is 'linear' by default, as tinygrad's; torch's is 'nearest'.
   *
   * ```js
   * await new Tensor([[[1, 3]]]).interpolate(4).tolist(); // [[[1, 1.5, 2.5, 3]]]
   * ```
   */
  interpolate(
    ...args:
      | [options?: InterpolateOptions]
      | [size: number | readonly number[] | null, options?: InterpolateOptions]
      | [
          size: number | readonly number[] | null,
          mode: "nearest" | "nearest-exact" | "linear" | "bilinear" | "trilinear",
          options?: InterpolateOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.interpolate", [this, ...args]);
  }

  /**
   * (..., c * r², h, w) as (..., c, h * r, w * r) (Shi et al., 2016). Throws ShapeError.
   *
   * ```js
   * await new Tensor([[[1]], [[2]], [[3]], [[4]]]).pixelShuffle(2).tolist(); // [[[1, 2], [3, 4]]]
   * ```
   */
  pixelShuffle(upscaleFactor: number): Tensor {
    return callTensor(this[owner], "Tensor.pixel_shuffle", [this, upscaleFactor]);
  }

  /**
   * (..., c, h * r, w * r) as (..., c * r², h, w): pixel_shuffle's inverse. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[[1, 2], [3, 4]]]).pixelUnshuffle(2).tolist(); // [[[1]], [[2]], [[3]], [[4]]]
   * ```
   */
  pixelUnshuffle(downscaleFactor: number): Tensor {
    return callTensor(this[owner], "Tensor.pixel_unshuffle", [this, downscaleFactor]);
  }

  /**
   * The positions of an image of `size` (n, channels, *spatial) after affine maps.
   *
   * this: (n, d, d + 1), a matrix and a shift for each; the result (n, *spatial, d) is what `gridSample`
   * takes: the last axis' position first, from -1 to 1, the centres of the outermost elements with
   * `alignCorners`, else their edges. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[[1, 0, 0.5], [0, 1, 0]]]).affineGrid([1, 1, 1, 2]).tolist(); // [[[[0, 0], [1, 0]]]]
   * ```
   */
  affineGrid(size: readonly number[], options?: AffineGridOptions): Tensor {
    return callTensor(this[owner], "Tensor.affine_grid", [this, size, options]);
  }

  /**
   * The image (n, channels, *spatial) at the positions `grid` (n, *out, d): (n, channels, *out).
   *
   * Positions are as `affineGrid` gives them. `mode`: 'nearest', 'bilinear' (linear in each axis), or
   * 'bicubic' (of two axes; Keys, 1981, with a = -0.75). `paddingMode`: what lies outside are 'zeros', or
   * the elements at the 'border', or its 'reflection'. Throws ArgumentError, ShapeError.
   *
   * ```js
   * const image = new Tensor([[[[1, 2, 3]]]]);
   * await image.gridSample(new Tensor([[[[0, 0], [1, 0]]]]), { alignCorners: true }).tolist(); // [[[[2, 3]]]]
   * ```
   */
  gridSample(
    ...args:
      | [grid: Tensor, options?: GridSampleOptions]
      | [grid: Tensor, mode: "nearest" | "bilinear" | "bicubic", options?: GridSampleOptions]
      | [
          grid: Tensor,
          mode: "nearest" | "bilinear" | "bicubic",
          paddingMode: "zeros" | "border" | "reflection",
          options?: GridSampleOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.grid_sample", [this, ...args]);
  }

  /**
   * The greatest element of each window over the last axes; `stride` defaults to the window.
   *
   * With `returnIndices` also its position (int32) in these axes, flattened, the first of equals or of
   * NaNs: what `maxUnpool2d` takes. Throws ShapeError.
   *
   * `dilation` comes before `padding`, and equal maxima of a window share the gradient, as tinygrad's; in
   * torch `padding` comes first, and the first of equals has the gradient.
   *
   * ```js
   * await new Tensor([[[[1, 2], [3, 4]]]]).maxPool2d().tolist(); // [[[[4]]]]
   * ```
   */
  maxPool2d(
    ...args:
      | [options: MaxPool2dOptions & { readonly returnIndices: true }]
      | [kernelSize: number | readonly number[], options: MaxPool2dOptions & { readonly returnIndices: true }]
      | [
          kernelSize: number | readonly number[],
          stride: number | readonly number[] | null,
          options: MaxPool2dOptions & { readonly returnIndices: true },
        ]
  ): [Tensor, Tensor];
  maxPool2d(
    ...args:
      | [options?: MaxPool2dOptions & { readonly returnIndices?: false }]
      | [
          kernelSize: number | readonly number[],
          options?: MaxPool2dOptions & { readonly returnIndices?: false },
        ]
      | [
          kernelSize: number | readonly number[],
          stride: number | readonly number[] | null,
          options?: MaxPool2dOptions & { readonly returnIndices?: false },
        ]
  ): Tensor;
  maxPool2d(
    ...args:
      | [options?: MaxPool2dOptions]
      | [kernelSize: number | readonly number[], options?: MaxPool2dOptions]
      | [
          kernelSize: number | readonly number[],
          stride: number | readonly number[] | null,
          options?: MaxPool2dOptions,
        ]
  ): Tensor | [Tensor, Tensor] {
    return callTensorOrPair(this[owner], "Tensor.max_pool2d", [this, ...args], "return_indices", 6);
  }

  /**
   * The elements at `indices` of `maxPool2d`, zeros elsewhere: (n, channels, *spatial).
   *
   * The other arguments are those of the pooling; they determine the size of the result, unless
   * `outputSize` (its last axes) is given. Where an index occurs twice, the elements add up. Throws
   * ShapeError.
   *
   * ```js
   * const [values, indices] = new Tensor([[[[1, 2], [3, 4]]]], { dtype: "int32" }).maxPool2d({ returnIndices: true });
   * await values.maxUnpool2d(indices).tolist(); // [[[[0, 0], [0, 4]]]]
   * ```
   */
  maxUnpool2d(
    ...args:
      | [indices: Tensor, options?: MaxUnpool2dOptions]
      | [indices: Tensor, kernelSize: number | readonly number[], options?: MaxUnpool2dOptions]
      | [
          indices: Tensor,
          kernelSize: number | readonly number[],
          stride: number | readonly number[] | null,
          options?: MaxUnpool2dOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.max_unpool2d", [this, ...args]);
  }

  /**
   * The mean of each window over the last axes; padding counts if `countIncludePad`. Throws
   * ShapeError.
   *
   * `dilation` comes before `padding`, as tinygrad's; torch has none, and `padding` in its place.
   *
   * ```js
   * await new Tensor([[[[1, 2], [3, 4]]]]).avgPool2d().tolist(); // [[[[2.5]]]]
   * ```
   */
  avgPool2d(
    ...args:
      | [options?: AvgPool2dOptions]
      | [kernelSize: number | readonly number[], options?: AvgPool2dOptions]
      | [
          kernelSize: number | readonly number[],
          stride: number | readonly number[] | null,
          options?: AvgPool2dOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.avg_pool2d", [this, ...args]);
  }

  /**
   * The means of `outputSize` windows of nearly equal size along the last axis.
   *
   * Window i is from floor(i n / m) up to ceil((i + 1) n / m), for m of n elements. Throws ArgumentError,
   * ShapeError.
   *
   * ```js
   * await new Tensor([[1, 2, 3, 4]]).adaptiveAvgPool1d(2).tolist(); // [[1.5, 3.5]]
   * ```
   */
  adaptiveAvgPool1d(outputSize: number | readonly number[]): Tensor {
    return callTensor(this[owner], "Tensor.adaptive_avg_pool1d", [this, outputSize]);
  }

  /**
   * As `adaptiveAvgPool1d`, over the last two axes; a size that is null is the axis' own.
   *
   * ```js
   * await new Tensor([[[1, 2], [3, 4]]]).adaptiveAvgPool2d([1, null]).tolist(); // [[[2, 3]]]
   * ```
   */
  adaptiveAvgPool2d(outputSize: number | readonly number[]): Tensor {
    return callTensor(this[owner], "Tensor.adaptive_avg_pool2d", [this, outputSize]);
  }

  /**
   * As `adaptiveAvgPool1d`, over the last three axes; a size that is null is the axis' own.
   *
   * ```js
   * await new Tensor([[[[1, 2], [3, 4]]]]).adaptiveAvgPool3d(1).tolist(); // [[[[2.5]]]]
   * ```
   */
  adaptiveAvgPool3d(outputSize: number | readonly number[]): Tensor {
    return callTensor(this[owner], "Tensor.adaptive_avg_pool3d", [this, outputSize]);
  }

  /**
   * The greatest elements of the windows of `adaptiveAvgPool1d`.
   *
   * With `returnIndices` also their positions (int32), as `maxPool2d` gives them. Throws ArgumentError,
   * ShapeError.
   *
   * ```js
   * await new Tensor([[1, 2, 3, 4]]).adaptiveMaxPool1d(2).tolist(); // [[2, 4]]
   * ```
   */
  adaptiveMaxPool1d(
    ...args: [
      outputSize: number | readonly number[],
      options: AdaptiveMaxPool1dOptions & { readonly returnIndices: true },
    ]
  ): [Tensor, Tensor];
  adaptiveMaxPool1d(
    ...args: [
      outputSize: number | readonly number[],
      options?: AdaptiveMaxPool1dOptions & { readonly returnIndices?: false },
    ]
  ): Tensor;
  adaptiveMaxPool1d(
    outputSize: number | readonly number[],
    options?: AdaptiveMaxPool1dOptions,
  ): Tensor | [Tensor, Tensor] {
    return callTensorOrPair(
      this[owner],
      "Tensor.adaptive_max_pool1d",
      [this, outputSize, options],
      "return_indices",
      2,
    );
  }

  /**
   * As `adaptiveMaxPool1d`, over the last two axes; a size that is null is the axis' own.
   *
   * ```js
   * const [values, indices] = new Tensor([[[1, 2], [4, 3]]], { dtype: "int32" }).adaptiveMaxPool2d([1, null], { returnIndices: true });
   * [await values.tolist(), await indices.tolist()]; // [[[[4, 3]]], [[[2, 3]]]]
   * ```
   */
  adaptiveMaxPool2d(
    ...args: [
      outputSize: number | readonly number[],
      options: AdaptiveMaxPool2dOptions & { readonly returnIndices: true },
    ]
  ): [Tensor, Tensor];
  adaptiveMaxPool2d(
    ...args: [
      outputSize: number | readonly number[],
      options?: AdaptiveMaxPool2dOptions & { readonly returnIndices?: false },
    ]
  ): Tensor;
  adaptiveMaxPool2d(
    outputSize: number | readonly number[],
    options?: AdaptiveMaxPool2dOptions,
  ): Tensor | [Tensor, Tensor] {
    return callTensorOrPair(
      this[owner],
      "Tensor.adaptive_max_pool2d",
      [this, outputSize, options],
      "return_indices",
      2,
    );
  }

  /**
   * As `adaptiveMaxPool1d`, over the last three axes; a size that is null is the axis' own.
   *
   * ```js
   * await new Tensor([[[[1, 2], [4, 3]]]]).adaptiveMaxPool3d(1).tolist(); // [[[[4]]]]
   * ```
   */
  adaptiveMaxPool3d(
    ...args: [
      outputSize: number | readonly number[],
      options: AdaptiveMaxPool3dOptions & { readonly returnIndices: true },
    ]
  ): [Tensor, Tensor];
  adaptiveMaxPool3d(
    ...args: [
      outputSize: number | readonly number[],
      options?: AdaptiveMaxPool3dOptions & { readonly returnIndices?: false },
    ]
  ): Tensor;
  adaptiveMaxPool3d(
    outputSize: number | readonly number[],
    options?: AdaptiveMaxPool3dOptions,
  ): Tensor | [Tensor, Tensor] {
    return callTensorOrPair(
      this[owner],
      "Tensor.adaptive_max_pool3d",
      [this, outputSize, options],
      "return_indices",
      2,
    );
  }

  /**
   * Cross-correlation over any number of spatial axes. Throws ShapeError, ArgumentError.
   *
   * Shapes: this (n, groups*cin, *spatial), weight (cout, cin, *kernel), bias (cout), result
   * (n, cout, *out).
   *
   * The order of arguments is tinygrad's; torch's is stride, padding, dilation, groups: pass them by
   * name.
   *
   * ```js
   * await Tensor.arange(9).reshape(1, 1, 3, 3).float().conv2d(Tensor.ones(1, 1, 2, 2)).tolist(); // [[[[8, 12], [20, 24]]]]
   * ```
   */
  conv2d(
    ...args:
      | [weight: Tensor, options?: Conv2dOptions]
      | [weight: Tensor, bias: Tensor | null, options?: Conv2dOptions]
      | [weight: Tensor, bias: Tensor | null, groups: number, options?: Conv2dOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.conv2d", [this, ...args]);
  }

  /**
   * The transpose of conv2d. weight: (groups*cin, cout/groups, *kernel). Throws ShapeError.
   *
   * The order of arguments is tinygrad's, as of `conv2d`.
   *
   * ```js
   * await new Tensor([[[[1, 2]]]]).convTranspose2d(Tensor.ones(1, 1, 1, 2)).tolist(); // [[[[1, 3, 2]]]]
   * ```
   */
  convTranspose2d(
    ...args:
      | [weight: Tensor, options?: ConvTranspose2dOptions]
      | [weight: Tensor, bias: Tensor | null, options?: ConvTranspose2dOptions]
      | [weight: Tensor, bias: Tensor | null, groups: number, options?: ConvTranspose2dOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.conv_transpose2d", [this, ...args]);
  }

  /**
   * `fft` along several axes: `dim`, by default all, or as many of the last as `s` has sizes.
   *
   * `s`: the sizes to cut or to pad to first, -1 for an axis as it is. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[[1, 0], [0, 0]]]).fftn().tolist(); // [[[1, 0], [1, 0]]]
   * ```
   */
  fftn(
    ...args:
      | [options?: FftnOptions]
      | [s: readonly number[] | null, options?: FftnOptions]
      | [s: readonly number[] | null, dim: number | readonly number[] | null, options?: FftnOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.fftn", [this, ...args]);
  }

  /**
   * The inverse of `fftn`, with its arguments. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[[2, 1]]]).ifftn().tolist(); // [[[2, 1]]]
   * ```
   */
  ifftn(
    ...args:
      | [options?: IfftnOptions]
      | [s: readonly number[] | null, options?: IfftnOptions]
      | [s: readonly number[] | null, dim: number | readonly number[] | null, options?: IfftnOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.ifftn", [this, ...args]);
  }

  /**
   * `fftn` of real numbers: of the last of the axes the half that `rfft` gives. Throws ShapeError,
   * ArgumentError.
   *
   * ```js
   * (await Tensor.ones(2, 4, 6).rfftn().ready()).shape; // [2, 4, 4, 2]
   * ```
   */
  rfftn(
    ...args:
      | [options?: RfftnOptions]
      | [s: readonly number[] | null, options?: RfftnOptions]
      | [s: readonly number[] | null, dim: number | readonly number[] | null, options?: RfftnOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.rfftn", [this, ...args]);
  }

  /**
   * The inverse of `rfftn`; the last size of `s` is that of the result, by default 2 (size - 1). Throws
   * ShapeError, ArgumentError.
   *
   * ```js
   * (await Tensor.ones(2, 4, 6).rfftn().irfftn().ready()).shape; // [2, 4, 6]
   * ```
   */
  irfftn(
    ...args:
      | [options?: IrfftnOptions]
      | [s: readonly number[] | null, options?: IrfftnOptions]
      | [s: readonly number[] | null, dim: number | readonly number[] | null, options?: IrfftnOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.irfftn", [this, ...args]);
  }

  /**
   * `fftn` along two axes. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[[1, 0], [0, 0]]]).fft2().tolist(); // [[[1, 0], [1, 0]]]
   * ```
   */
  fft2(
    ...args:
      | [options?: Fft2Options]
      | [s: readonly number[] | null, options?: Fft2Options]
      | [s: readonly number[] | null, dim: readonly number[], options?: Fft2Options]
  ): Tensor {
    return callTensor(this[owner], "Tensor.fft2", [this, ...args]);
  }

  /**
   * `ifftn` along two axes. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[[2, 1]]]).ifft2().tolist(); // [[[2, 1]]]
   * ```
   */
  ifft2(
    ...args:
      | [options?: Ifft2Options]
      | [s: readonly number[] | null, options?: Ifft2Options]
      | [s: readonly number[] | null, dim: readonly number[], options?: Ifft2Options]
  ): Tensor {
    return callTensor(this[owner], "Tensor.ifft2", [this, ...args]);
  }

  /**
   * `rfftn` along two axes. Throws ShapeError, ArgumentError.
   *
   * ```js
   * (await new Tensor([[1, 0], [0, 0]]).rfft2().ready()).shape; // [2, 2, 2]
   * ```
   */
  rfft2(
    ...args:
      | [options?: Rfft2Options]
      | [s: readonly number[] | null, options?: Rfft2Options]
      | [s: readonly number[] | null, dim: readonly number[], options?: Rfft2Options]
  ): Tensor {
    return callTensor(this[owner], "Tensor.rfft2", [this, ...args]);
  }

  /**
   * `irfftn` along two axes. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).rfft2().irfft2().round().tolist(); // [[1, 2], [3, 4]]
   * ```
   */
  irfft2(
    ...args:
      | [options?: Irfft2Options]
      | [s: readonly number[] | null, options?: Irfft2Options]
      | [s: readonly number[] | null, dim: readonly number[], options?: Irfft2Options]
  ): Tensor {
    return callTensor(this[owner], "Tensor.irfft2", [this, ...args]);
  }

  /**
   * The transform, `n` real numbers, of a signal of which the second half is the conjugate of the
   * first. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 0], [1, 0]]).hfft().tolist(); // [2, 0]
   * ```
   */
  hfft(
    ...args:
      | [options?: HfftOptions]
      | [n: number | null, options?: HfftOptions]
      | [n: number | null, dim: number, options?: HfftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.hfft", [this, ...args]);
  }

  /**
   * The inverse of `hfft`: half a signal, in pairs. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([2, 0]).ihfft().tolist(); // [[1, 0], [1, 0]]
   * ```
   */
  ihfft(
    ...args:
      | [options?: IhfftOptions]
      | [n: number | null, options?: IhfftOptions]
      | [n: number | null, dim: number, options?: IhfftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.ihfft", [this, ...args]);
  }

  /**
   * The frequencies of the n results of `fft`, of samples that are `d` apart. Throws ArgumentError.
   *
   * ```js
   * await Tensor.fftfreq(4).tolist(); // [0, 0.25, -0.5, -0.25]
   * ```
   */
  static fftfreq(
    ...args:
      | [n: number, options?: FftfreqOptions]
      | [n: number, d: number, options?: FftfreqOptions]
      | [n: number, d: number, dtype: DTypeName | null, options?: FftfreqOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.fftfreq", [...args]);
  }

  /**
   * The frequencies of the floor(n / 2) + 1 results of `rfft`. Throws ArgumentError.
   *
   * ```js
   * await Tensor.rfftfreq(4).tolist(); // [0, 0.25, 0.5]
   * ```
   */
  static rfftfreq(
    ...args:
      | [n: number, options?: RfftfreqOptions]
      | [n: number, d: number, options?: RfftfreqOptions]
      | [n: number, d: number, dtype: DTypeName | null, options?: RfftfreqOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.rfftfreq", [...args]);
  }

  /**
   * The frequency 0 moved to the middle of the axes `dim`, by default of all: of pairs, say which.
   *
   * ```js
   * await Tensor.fftfreq(4).fftshift().tolist(); // [-0.5, -0.25, 0, 0.25]
   * ```
   */
  fftshift(
    ...args: [options?: FftshiftOptions] | [dim: number | readonly number[] | null, options?: FftshiftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.fftshift", [this, ...args]);
  }

  /**
   * The inverse of `fftshift`.
   *
   * ```js
   * await new Tensor([-0.5, -0.25, 0, 0.25]).ifftshift().tolist(); // [0, 0.25, -0.5, -0.25]
   * ```
   */
  ifftshift(
    ...args:
      [options?: IfftshiftOptions] | [dim: number | readonly number[] | null, options?: IfftshiftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.ifftshift", [this, ...args]);
  }

  /**
   * The transforms of overlapping pieces of a real signal (..., size): (..., frequencies, pieces, 2).
   *
   * Pieces of `nFft` elements begin every `hopLength` (a quarter of nFft) and are multiplied by
   * `window`, of `winLength` elements (nFft), in the middle. `center`: piece i is around element
   * i hopLength; the signal is padded as `padMode` says. `normalized`: divided by the root of nFft.
   * `onesided`: floor(nFft / 2) + 1 frequencies, else all. As torch's. Throws ShapeError, ArgumentError.
   *
   * ```js
   * (await Tensor.ones(8).stft(4, { center: false }).ready()).shape; // [3, 5, 2]
   * ```
   */
  stft(
    ...args:
      | [nFft: number, options?: StftOptions]
      | [nFft: number, hopLength: number | null, options?: StftOptions]
      | [nFft: number, hopLength: number | null, winLength: number | null, options?: StftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.stft", [this, ...args]);
  }

  /**
   * The signal whose transforms these are, (..., frequencies, pieces, 2); arguments as of `stft`.
   *
   * `length`: how many elements of it. Where pieces overlap it is the mean that is weighted by squared
   * windows (Griffin and Lim, 1984). Throws ShapeError, ArgumentError.
   *
   * ```js
   * await Tensor.ones(8).stft(4).istft(4).round().tolist(); // [1, 1, 1, 1, 1, 1, 1, 1]
   * ```
   */
  istft(
    ...args:
      | [nFft: number, options?: IstftOptions]
      | [nFft: number, hopLength: number | null, options?: IstftOptions]
      | [nFft: number, hopLength: number | null, winLength: number | null, options?: IstftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.istft", [this, ...args]);
  }

  /**
   * The Fourier transform of complex numbers (..., size, 2) along `dim`, of the axes before the pairs.
   *
   * `n`: the size to cut or to pad with zeros to first. `norm`: 'backward' leaves the scale to `ifft`,
   * 'forward' divides by n, 'ortho' by its root. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 0], [0, 0]]).fft().tolist(); // [[1, 0], [1, 0]]
   * ```
   */
  fft(
    ...args:
      | [options?: FftOptions]
      | [n: number | null, options?: FftOptions]
      | [n: number | null, dim: number, options?: FftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.fft", [this, ...args]);
  }

  /**
   * The inverse of `fft`, with its arguments. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 0], [0, 0]]).ifft().tolist(); // [[0.5, 0], [0.5, 0]]
   * ```
   */
  ifft(
    ...args:
      | [options?: IfftOptions]
      | [n: number | null, options?: IfftOptions]
      | [n: number | null, dim: number, options?: IfftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.ifft", [this, ...args]);
  }

  /**
   * The Fourier transform of real numbers: floor(n / 2) + 1 complex ones, (..., floor(n / 2) + 1, 2).
   *
   * Arguments as of `fft`. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([1, 0]).rfft().tolist(); // [[1, 0], [1, 0]]
   * ```
   */
  rfft(
    ...args:
      | [options?: RfftOptions]
      | [n: number | null, options?: RfftOptions]
      | [n: number | null, dim: number, options?: RfftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.rfft", [this, ...args]);
  }

  /**
   * The inverse of `rfft`: `n` real numbers, by default 2 (size - 1).
   *
   * Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[3, 0], [1, 0]]).irfft().tolist(); // [2, 1]
   * ```
   */
  irfft(
    ...args:
      | [options?: IrfftOptions]
      | [n: number | null, options?: IrfftOptions]
      | [n: number | null, dim: number, options?: IrfftOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.irfft", [this, ...args]);
  }

  /**
   * Random bits (uint64): a hash of this counter and the key `seed`, both uint64. Throws DTypeError.
   *
   * 20 rounds of Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
   *
   * ```js
   * (await new Tensor([1], { dtype: "uint64" }).threefry(new Tensor([2], { dtype: "uint64" })).ready()).dtype; // "uint64"
   * ```
   */
  threefry(seed: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.threefry", [this, seed]);
  }

  /**
   * `num` random words (uint32) of a key and a counter, two uint32 words each. Throws ArgumentError.
   *
   * The bits are tinygrad's.
   *
   * ```js
   * (await Tensor.randomBits(new Tensor([1, 2], { dtype: "uint32" }), new Tensor([0, 0], { dtype: "uint32" }), 3).ready()).shape; // [3]
   * ```
   */
  static randomBits(key: Tensor, counter: Tensor, num: number): Tensor {
    return callTensor(this.bound, "Tensor.random_bits", [key, counter, num]);
  }

  /**
   * The SHA-3 hash of the bytes of each row: (..., n) gives (..., size), uint8.
   *
   * `cfg`: 'sha3_224', 'sha3_256', 'sha3_384', 'sha3_512', 'shake_128' (16 bytes), 'shake_256' (32), or
   * the bytes of a block and the byte that ends a message. Throws ArgumentError, ShapeError.
   *
   * ```js
   * await new Tensor([97, 98, 99], { dtype: "uint8" }).keccak().shrink([[0, 4]]).tolist(); // [58, 152, 93, 167]
   * ```
   */
  keccak(
    ...args: [options?: KeccakOptions] | [cfg: string | readonly number[], options?: KeccakOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.keccak", [this, ...args]);
  }

  /**
   * A hash of 16 bytes (uint8) of all bytes of this Tensor, in row-major order: tinygrad's.
   *
   * A tree of SHAKE128 over pieces of 4,096 bytes, padded with zeros to a multiple of 2**20.
   *
   * ```js
   * (await new Tensor([1, 2, 3]).hash().ready()).shape; // [16]
   * ```
   */
  hash(): Tensor {
    return callTensor(this[owner], "Tensor.hash", [this]);
  }

  /**
   * The lower triangular L with L · Lᵀ = this, which is symmetric and positive definite (`upper`: Lᵀ).
   *
   * this: (..., n, n); only its lower triangle is used. The result is NaN where this is not positive
   * definite; with `CHECK=1` that is a LinAlgError. The gradient is symmetric. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[4, 2], [2, 5]]).cholesky().tolist(); // [[2, 0], [1, 2]]
   * ```
   */
  cholesky(...args: [options?: CholeskyOptions] | [upper: boolean, options?: CholeskyOptions]): Tensor {
    return callTensor(this[owner], "Tensor.cholesky", [this, ...args]);
  }

  /**
   * `cholesky`, and an error code for each matrix (...), int32: 0, or the order of the first leading
   * minor that is not positive definite. From that column on, the factor is NaN.
   *
   * `checkErrors`: read the codes now, and throw LinAlgError if one is not 0. Throws ShapeError.
   *
   * ```js
   * const [factor, info] = new Tensor([[[4, 2], [2, 5]], [[1, 2], [2, 1]]]).choleskyEx();
   * await info.tolist(); // [0, 2]
   * ```
   */
  choleskyEx(options?: CholeskyExOptions): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.cholesky_ex", [this, options], 2) as [Tensor, Tensor];
  }

  /**
   * Q, of orthonormal columns, and R, upper triangular, with Q · R = this (..., m, n).
   *
   * 'reduced': Q (..., m, k), R (..., k, n) for k = min(m, n); 'complete': Q (..., m, m), R (..., m, n).
   * Signs are LAPACK's. By Householder's reflections. The complete Q of m > n has no gradient
   * (GradientError). Throws ShapeError, ArgumentError.
   *
   * ```js
   * const [q, r] = new Tensor([[0, 2], [-1, 3]]).qr();
   * await q.matmul(r).round().abs().tolist(); // [[0, 2], [1, 3]]
   * ```
   */
  qr(...args: [options?: QrOptions] | [mode: "reduced" | "complete", options?: QrOptions]): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.qr", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The eigenvalues (..., n), ascending, and the orthonormal eigenvectors (..., n, n), as columns, of a
   * symmetric matrix (..., n, n). Only the lower triangle is used.
   *
   * Signs of eigenvectors are not determined; their gradient is infinite where eigenvalues are equal. By
   * Jacobi's method, n / 2 rotations at a time (Brent and Luk, 1985). Throws ShapeError.
   *
   * ```js
   * const [values, vectors] = new Tensor([[2, 0], [0, 1]]).eigh();
   * await values.tolist(); // [1, 2]
   * ```
   */
  eigh(): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.eigh", [this], 2) as [Tensor, Tensor];
  }

  /**
   * U, S, Vᵀ with U · diag(S) · Vᵀ = this (..., m, n); S (..., k) descends, k = min(m, n).
   *
   * U is (..., m, m) and Vᵀ (..., n, n), or (..., m, k) and (..., k, n) if not `fullMatrices`. Signs are
   * not determined; the gradient of U and V is infinite where singular values are equal, and that of the
   * columns beyond k does not exist (GradientError). By Hestenes' one-sided Jacobi method. torch's default
   * is `fullMatrices: false` (its `some`). Throws ShapeError.
   *
   * ```js
   * const [u, s, vt] = new Tensor([[0, 2], [1, 0]]).svd();
   * await s.tolist(); // [2, 1]
   * ```
   */
  svd(
    ...args: [options?: SvdOptions] | [fullMatrices: boolean, options?: SvdOptions]
  ): [Tensor, Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.svd", [this, ...args], 3) as [Tensor, Tensor, Tensor];
  }

  /**
   * The odd polynomial params[0] x + params[1] x³ + ... of the singular values, `steps` times over.
   *
   * this (..., m, n) is first divided by its Frobenius norm + `eps`. With the parameters of Muon it leads
   * to the nearest orthogonal matrix. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[3, 0], [0, 1]]).newtonSchulz(20, [1.5, -0.5]).round().tolist(); // [[1, 0], [0, 1]]
   * ```
   */
  newtonSchulz(
    ...args:
      | [steps: number, params: readonly number[], options?: NewtonSchulzOptions]
      | [steps: number, params: readonly number[], eps: number, options?: NewtonSchulzOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.newton_schulz", [this, ...args]);
  }

  /**
   * x with this · x = b. this: (..., n, n), b: (..., n, m), or (n); batches broadcast.
   *
   * A singular matrix gives infinities or NaN; with `CHECK=1` it is a LinAlgError. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[2, 0], [0, 4]]).solve(new Tensor([2, 2])).tolist(); // [1, 0.5]
   * ```
   */
  solve(b: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.solve", [this, b]);
  }

  /**
   * The inverse of each matrix (..., n, n); infinities or NaN for a singular one, which is a
   * LinAlgError with `CHECK=1`. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[2, 0], [0, 4]]).inv().tolist(); // [[0.5, 0], [0, 0.25]]
   * ```
   */
  inv(): Tensor {
    return callTensor(this[owner], "Tensor.inv", [this]);
  }

  /**
   * The inverse of each matrix (..., n, n); infinities or NaN for a singular one, which is a
   * LinAlgError with `CHECK=1`. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[2, 0], [0, 4]]).inv().tolist(); // [[0.5, 0], [0, 0.25]]
   * ```
   */
  inverse(): Tensor {
    return callTensor(this[owner], "Tensor.inverse", [this]);
  }

  /**
   * The inverse of each matrix (..., n, n), and an error code (...), int32. The code is 0, or the
   * 1-based index of the first zero pivot: such a matrix is singular, and its inverse holds infinities or
   * NaN. A matrix that is singular only up to rounding has the code 0.
   *
   * `checkErrors`: read the codes now, and throw LinAlgError if one is not 0. Throws ShapeError.
   *
   * ```js
   * const [inverse, info] = new Tensor([[[2, 0], [0, 4]], [[1, 1], [1, 1]]]).invEx();
   * await info.tolist(); // [0, 2]
   * ```
   */
  invEx(
    ...args: [options?: InvExOptions] | [checkErrors: boolean, options?: InvExOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.inv_ex", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The n-th power of each matrix; of its inverse if n is less than 0. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1, 1], [0, 1]]).matrixPower(5).tolist(); // [[1, 5], [0, 1]]
   * ```
   */
  matrixPower(n: number): Tensor {
    return callTensor(this[owner], "Tensor.matrix_power", [this, n]);
  }

  /**
   * The determinant of each matrix (..., n, n), (...). Throws ShapeError.
   *
   * Its gradient needs the inverse: that of a singular matrix is NaN.
   *
   * ```js
   * await new Tensor([[2, 0], [1, 4]]).det().item(); // 8
   * ```
   */
  det(): Tensor {
    return callTensor(this[owner], "Tensor.det", [this]);
  }

  /**
   * x with this · x = b, where only the lower triangle of this is used (`upper`: the upper one).
   *
   * this: (..., n, n), b: (..., n, m), or (n); batches broadcast. A 0 on the diagonal gives infinities or
   * NaN; with `CHECK=1` it is a LinAlgError. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[2, 0], [1, 1]]).triangularSolve(new Tensor([2, 3])).tolist(); // [1, 2]
   * ```
   */
  triangularSolve(b: Tensor, options?: TriangularSolveOptions): Tensor {
    return callTensor(this[owner], "Tensor.triangular_solve", [this, b, options]);
  }

  /**
   * The matrix product: (..., m, k) and (..., k, n) give (..., m, n); 1-D is a row or a column.
   *
   * Leading axes broadcast. `dtype`: to multiply and accumulate in, and of the result: of int8 operands,
   * int32 gives sums that do not wrap around at 127. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).dot(new Tensor([[1, 0], [1, 1]], { dtype: "int32" })).tolist(); // [[3, 2], [7, 4]]
   * ```
   */
  dot(
    ...args: [w: Tensor, options?: DotOptions] | [w: Tensor, dtype: DTypeName | null, options?: DotOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.dot", [this, ...args]);
  }

  /**
   * `dot`.
   *
   * ```js
   * await new Tensor([[1, 2]]).matmul(new Tensor([[3], [4]], { dtype: "int32" })).tolist(); // [[11]]
   * ```
   */
  matmul(
    ...args:
      [x: Operand, options?: MatmulOptions] | [x: Operand, dtype: DTypeName | null, options?: MatmulOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.matmul", [this, ...args]);
  }

  /**
   * `dot`.
   *
   * ```js
   * await new Tensor([[1, 2]]).matmul(new Tensor([[3], [4]], { dtype: "int32" })).tolist(); // [[11]]
   * ```
   */
  mm(
    ...args: [x: Operand, options?: MmOptions] | [x: Operand, dtype: DTypeName | null, options?: MmOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.mm", [this, ...args]);
  }

  /**
   * `dot`.
   *
   * ```js
   * await new Tensor([[1, 2]]).matmul(new Tensor([[3], [4]], { dtype: "int32" })).tolist(); // [[11]]
   * ```
   */
  bmm(
    ...args: [x: Operand, options?: BmmOptions] | [x: Operand, dtype: DTypeName | null, options?: BmmOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.bmm", [this, ...args]);
  }

  /**
   * `dot`.
   *
   * ```js
   * await new Tensor([[1, 2]]).matmul(new Tensor([[3], [4]], { dtype: "int32" })).tolist(); // [[11]]
   * ```
   */
  mv(
    ...args: [x: Operand, options?: MvOptions] | [x: Operand, dtype: DTypeName | null, options?: MvOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.mv", [this, ...args]);
  }

  /**
   * this · weight + bias; a 1-D weight scales. weight: (in, out).
   *
   * `dtype`: all operands are cast to it first, so the result has it too.
   *
   * torch.nn.functional's weight is (out, in), as `nn.Linear`'s.
   *
   * ```js
   * await new Tensor([[1, 2]]).linear(new Tensor([[1], [10]]), new Tensor([0.5])).tolist(); // [[21.5]]
   * ```
   */
  linear(
    ...args:
      | [weight: Tensor, options?: LinearOptions]
      | [weight: Tensor, bias: Tensor | null, options?: LinearOptions]
      | [weight: Tensor, bias: Tensor | null, dtype: DTypeName | null, options?: LinearOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.linear", [this, ...args]);
  }

  /**
   * Einstein summation, as numpy.einsum: letters name axes, '...' the other axes.
   *
   * More than two operands are multiplied in the order that takes the fewest products. Throws
   * ArgumentError, ShapeError.
   *
   * ```js
   * await Tensor.einsum("ij,j->i", new Tensor([[1, 2], [3, 4]], { dtype: "int32" }), new Tensor([1, 1], { dtype: "int32" })).tolist(); // [3, 7]
   * ```
   */
  static einsum(
    ...args:
      | [formula: string, ...operands: Tensor[]]
      | [formula: string, ...operands: Tensor[], options: EinsumOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.einsum", [...args]);
  }

  /**
   * The products of all pairs of elements: (m) and (n) give (m, n). Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).outer(new Tensor([3, 4], { dtype: "int32" })).tolist(); // [[3, 4], [6, 8]]
   * ```
   */
  outer(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.outer", [this, other]);
  }

  /**
   * The products of all pairs of elements: (m) and (n) give (m, n). Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).outer(new Tensor([3, 4], { dtype: "int32" })).tolist(); // [[3, 4], [6, 8]]
   * ```
   */
  ger(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.ger", [this, other]);
  }

  /**
   * The Kronecker product: each element of this times the whole of `other`; sizes multiply.
   *
   * ```js
   * await new Tensor([1, 2]).kron(new Tensor([1, 10], { dtype: "int32" })).tolist(); // [1, 10, 2, 20]
   * ```
   */
  kron(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.kron", [this, other]);
  }

  /**
   * The cross product of vectors of 3 elements along `dim`; other axes broadcast. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 0, 0]).cross(new Tensor([0, 1, 0], { dtype: "int32" })).tolist(); // [0, 0, 1]
   * ```
   */
  cross(
    ...args: [other: Tensor, options?: CrossOptions] | [other: Tensor, dim: number, options?: CrossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.cross", [this, ...args]);
  }

  /**
   * The sum of the diagonal of the last two axes, `offset` above the main one. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).trace().item(); // 5
   * ```
   */
  trace(...args: [options?: TraceOptions] | [offset: number, options?: TraceOptions]): Tensor {
    return callTensor(this[owner], "Tensor.trace", [this, ...args]);
  }

  /**
   * Distances between rows: (..., m, k) and (..., n, k) give (..., m, n), by the p-norm of differences.
   *
   * The gradient of a distance of 0 is 0. Throws ShapeError, ArgumentError for a negative p.
   *
   * ```js
   * await new Tensor([[0, 0]]).cdist(new Tensor([[3, 4], [0, 1]])).tolist(); // [[5, 1]]
   * ```
   */
  cdist(
    ...args: [other: Tensor, options?: CdistOptions] | [other: Tensor, p: number, options?: CdistOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.cdist", [this, ...args]);
  }

  /**
   * The Vandermonde matrix of a 1-D Tensor: `n` powers (default: as many as elements), descending.
   *
   * `increasing`: from the power 0 on. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([1, 2, 3]).vander().tolist(); // [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
   * ```
   */
  vander(...args: [options?: VanderOptions] | [n: number | null, options?: VanderOptions]): Tensor {
    return callTensor(this[owner], "Tensor.vander", [this, ...args]);
  }

  /**
   * The square matrix with this 1-D Tensor on its diagonal; of a matrix, its diagonal.
   *
   * Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).diag().tolist(); // [[1, 0], [0, 2]]
   * ```
   */
  diag(): Tensor {
    return callTensor(this[owner], "Tensor.diag", [this]);
  }

  /**
   * The upper triangle of the last two axes, from `diagonal` on; 0 below.
   *
   * ```js
   * await Tensor.ones(2, 2).triu().tolist(); // [[1, 1], [0, 1]]
   * ```
   */
  triu(...args: [options?: TriuOptions] | [diagonal: number, options?: TriuOptions]): Tensor<D> {
    return callTensor(this[owner], "Tensor.triu", [this, ...args]);
  }

  /**
   * The lower triangle of the last two axes, up to `diagonal`; 0 above.
   *
   * ```js
   * await Tensor.ones(2, 2).tril().tolist(); // [[1, 0], [1, 1]]
   * ```
   */
  tril(...args: [options?: TrilOptions] | [diagonal: number, options?: TrilOptions]): Tensor<D> {
    return callTensor(this[owner], "Tensor.tril", [this, ...args]);
  }

  /**
   * beta * this + alpha * mat1 · mat2. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1]]).addmm(new Tensor([[2]]), new Tensor([[3]]), { beta: 0.5 }).tolist(); // [[6.5]]
   * ```
   */
  addmm(
    ...args:
      | [mat1: Tensor, mat2: Tensor, options?: AddmmOptions]
      | [mat1: Tensor, mat2: Tensor, beta: number, options?: AddmmOptions]
      | [mat1: Tensor, mat2: Tensor, beta: number, alpha: number, options?: AddmmOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.addmm", [this, ...args]);
  }

  /**
   * beta * this + alpha * mat1 · mat2. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1]]).addmm(new Tensor([[2]]), new Tensor([[3]]), { beta: 0.5 }).tolist(); // [[6.5]]
   * ```
   */
  baddbmm(
    ...args:
      | [mat1: Tensor, mat2: Tensor, options?: BaddbmmOptions]
      | [mat1: Tensor, mat2: Tensor, beta: number, options?: BaddbmmOptions]
      | [mat1: Tensor, mat2: Tensor, beta: number, alpha: number, options?: BaddbmmOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.baddbmm", [this, ...args]);
  }

  /**
   * beta * this + alpha * mat1 · mat2. Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1]]).addmm(new Tensor([[2]]), new Tensor([[3]]), { beta: 0.5 }).tolist(); // [[6.5]]
   * ```
   */
  addmv(
    ...args:
      | [mat1: Tensor, mat2: Tensor, options?: AddmvOptions]
      | [mat1: Tensor, mat2: Tensor, beta: number, options?: AddmvOptions]
      | [mat1: Tensor, mat2: Tensor, beta: number, alpha: number, options?: AddmvOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.addmv", [this, ...args]);
  }

  /**
   * The sums over the last axes of both. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).inner(new Tensor([3, 4], { dtype: "int32" })).item(); // 11
   * ```
   */
  inner(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.inner", [this, other]);
  }

  /**
   * The sums over the last axes of both. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).inner(new Tensor([3, 4], { dtype: "int32" })).item(); // 11
   * ```
   */
  vdot(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.vdot", [this, other]);
  }

  /**
   * The p-norm of the difference.
   *
   * ```js
   * await new Tensor([1, 2]).dist(new Tensor([4, 6])).item(); // 5
   * ```
   */
  dist(
    ...args: [other: Tensor, options?: DistOptions] | [other: Tensor, p: number, options?: DistOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.dist", [this, ...args]);
  }

  /**
   * The p-norms of this - other + eps along the last axis.
   *
   * ```js
   * await new Tensor([[0, 0]]).pairwiseDistance(new Tensor([[3, 4]]), { eps: 0 }).tolist(); // [5]
   * ```
   */
  pairwiseDistance(
    ...args:
      | [other: Tensor, options?: PairwiseDistanceOptions]
      | [other: Tensor, p: number, options?: PairwiseDistanceOptions]
      | [other: Tensor, p: number, eps: number, options?: PairwiseDistanceOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.pairwise_distance", [this, ...args]);
  }

  /**
   * The cosine of the angle between vectors along `dim`; each length counts as at least `eps`.
   *
   * Throws AxisError, ShapeError.
   *
   * ```js
   * await new Tensor([[3, 4]]).cosineSimilarity(new Tensor([[4, 3]])).tolist(); // ≈ [0.9599]
   * ```
   */
  cosineSimilarity(
    ...args:
      | [other: Tensor, options?: CosineSimilarityOptions]
      | [other: Tensor, dim: number, options?: CosineSimilarityOptions]
      | [other: Tensor, dim: number, eps: number, options?: CosineSimilarityOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.cosine_similarity", [this, ...args]);
  }

  /**
   * Matrices with the last axis on their diagonals.
   *
   * ```js
   * await new Tensor([1, 2]).diagEmbed().tolist(); // [[1, 0], [0, 2]]
   * ```
   */
  diagEmbed(): Tensor {
    return callTensor(this[owner], "Tensor.diag_embed", [this]);
  }

  /**
   * The cross-entropy of these logits, classes along axis 1 (0 when 1-D).
   *
   * `Y`: class indices (integers, this shape without the class axis) or probabilities (this shape).
   * `weight`: one per class; the mean over class indices is weighted. Class indices `ignoreIndex`
   * (torch's is -100) count for nothing. Throws ShapeError, ArgumentError.
   *
   * No class is ignored by default, as tinygrad's; torch ignores -100: say `ignoreIndex: -100`.
   *
   * ```js
   * await new Tensor([[2, 0], [0, 1]]).crossEntropy(new Tensor([0, 1], { dtype: "int32" })).item(); // ≈ 0.22009
   * ```
   */
  crossEntropy(
    ...args:
      | [Y: Tensor, options?: CrossEntropyOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: CrossEntropyOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", labelSmoothing: number, options?: CrossEntropyOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.cross_entropy", [this, ...args]);
  }

  /**
   * The Kullback-Leibler divergence of these log-probabilities from the probabilities Y, by element.
   *
   * `logTarget`: Y are log-probabilities too. `reduction` may be 'batchmean': the sum over axis 0's size.
   * Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([0.5, 0.5]).log().klDiv(new Tensor([0.25, 0.75]), { reduction: "sum" }).item(); // ≈ 0.13081
   * ```
   */
  klDiv(
    ...args:
      | [Y: Tensor, options?: KlDivOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none" | "batchmean", options?: KlDivOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.kl_div", [this, ...args]);
  }

  /**
   * d² / 2 where |d| is up to `delta`, and delta (|d| - delta / 2) beyond, for d = this - Y.
   *
   * Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([0.5, 3]).huberLoss(new Tensor([0, 0])).item(); // 1.3125
   * ```
   */
  huberLoss(
    ...args:
      | [Y: Tensor, options?: HuberLossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: HuberLossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", delta: number, options?: HuberLossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.huber_loss", [this, ...args]);
  }

  /**
   * The cross-entropy of these logits, classes along the last axis, with the integers Y.
   *
   * Rows whose class is `ignoreIndex` count for nothing (-1, the default, names no class: such rows give
   * 0 but count, as in tinygrad). Throws ShapeError, DTypeError, ArgumentError.
   *
   * ```js
   * await new Tensor([[2, 0]]).sparseCategoricalCrossentropy(new Tensor([0], { dtype: "int32" })).item(); // ≈ 0.12692
   * ```
   */
  sparseCategoricalCrossentropy(
    ...args:
      | [Y: Tensor, options?: SparseCategoricalCrossentropyOptions]
      | [Y: Tensor, ignoreIndex: number, options?: SparseCategoricalCrossentropyOptions]
      | [
          Y: Tensor,
          ignoreIndex: number,
          labelSmoothing: number,
          options?: SparseCategoricalCrossentropyOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.sparse_categorical_crossentropy", [this, ...args]);
  }

  /**
   * The negative log-likelihood of these log-probabilities with integers Y; classes on axis 1 (or 0).
   *
   * `weight`: one per class; the mean is weighted. Throws ShapeError, DTypeError.
   *
   * ```js
   * await new Tensor([[0.25, 0.75]]).log().nllLoss(new Tensor([1], { dtype: "int32" })).item(); // ≈ 0.28768
   * ```
   */
  nllLoss(
    ...args:
      | [Y: Tensor, options?: NllLossOptions]
      | [Y: Tensor, weight: Tensor | null, options?: NllLossOptions]
      | [Y: Tensor, weight: Tensor | null, ignoreIndex: number | null, options?: NllLossOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.nll_loss", [this, ...args]);
  }

  /**
   * The cross-entropy of these probabilities (between 0 and 1) with the labels Y, of the same shape.
   *
   * ```js
   * await new Tensor([0.9, 0.2]).binaryCrossentropy(new Tensor([1, 0])).item(); // ≈ 0.16425
   * ```
   */
  binaryCrossentropy(
    ...args:
      | [Y: Tensor, options?: BinaryCrossentropyOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: BinaryCrossentropyOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.binary_crossentropy", [this, ...args]);
  }

  /**
   * `binaryCrossentropy` whose logarithms are at least -100, as torch's: finite for 0 and 1.
   *
   * ```js
   * await new Tensor([1, 0]).binaryCrossEntropy(new Tensor([1, 1]), "none").tolist(); // [0, 100]
   * ```
   */
  binaryCrossEntropy(
    ...args:
      | [Y: Tensor, options?: BinaryCrossEntropyOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: BinaryCrossEntropyOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.binary_cross_entropy", [this, ...args]);
  }

  /**
   * The cross-entropy of sigmoid(this) with the labels Y, without overflow.
   *
   * `posWeight` scales the positive part.
   *
   * ```js
   * await new Tensor([2, -1]).binaryCrossentropyLogits(new Tensor([1, 0])).item(); // ≈ 0.22009
   * ```
   */
  binaryCrossentropyLogits(
    ...args:
      | [Y: Tensor, options?: BinaryCrossentropyLogitsOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: BinaryCrossentropyLogitsOptions]
      | [
          Y: Tensor,
          reduction: "mean" | "sum" | "none",
          posWeight: Tensor | null,
          options?: BinaryCrossentropyLogitsOptions,
        ]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.binary_crossentropy_logits", [this, ...args]);
  }

  /**
   * The cross-entropy of sigmoid(this) with the labels Y, without overflow.
   *
   * `posWeight` scales the positive part.
   *
   * ```js
   * await new Tensor([2, -1]).binaryCrossentropyLogits(new Tensor([1, 0])).item(); // ≈ 0.22009
   * ```
   */
  binaryCrossEntropyWithLogits(
    ...args:
      | [Y: Tensor, options?: BinaryCrossEntropyWithLogitsOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: BinaryCrossEntropyWithLogitsOptions]
      | [
          Y: Tensor,
          reduction: "mean" | "sum" | "none",
          posWeight: Tensor | null,
          options?: BinaryCrossEntropyWithLogitsOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.binary_cross_entropy_with_logits", [this, ...args]);
  }

  /**
   * The squared difference from Y. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([1, 4]).mseLoss(new Tensor([1, 2])).item(); // 2
   * ```
   */
  mseLoss(
    ...args:
      | [Y: Tensor, options?: MseLossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: MseLossOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.mse_loss", [this, ...args]);
  }

  /**
   * The magnitude of the difference from Y. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([1, 4]).l1Loss(new Tensor([1, 2])).item(); // 1
   * ```
   */
  l1Loss(
    ...args:
      | [Y: Tensor, options?: L1LossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: L1LossOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.l1_loss", [this, ...args]);
  }

  /**
   * d² / (2 beta) where |d| is less than `beta`, and |d| - beta / 2 beyond, for d = this - Y.
   *
   * Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([0.5, 3]).smoothL1Loss(new Tensor([0, 0])).item(); // 1.3125
   * ```
   */
  smoothL1Loss(
    ...args:
      | [Y: Tensor, options?: SmoothL1LossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", options?: SmoothL1LossOptions]
      | [Y: Tensor, reduction: "mean" | "sum" | "none", beta: number, options?: SmoothL1LossOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.smooth_l1_loss", [this, ...args]);
  }

  /**
   * Y's negative log-likelihood under normal distributions with these means and variances.
   *
   * (log variance + (this - Y)² / variance) / 2, with variances of at least `eps`, which gradients do not
   * see (Nix and Weigend, 1994). `full`: with the constant log(2 pi) / 2. `variance` has this shape, or
   * one that broadcasts to it. Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([1, 4]).gaussianNllLoss(new Tensor([1, 2]), new Tensor([1, 4])).item(); // ≈ 0.59657
   * ```
   */
  gaussianNllLoss(Y: Tensor, variance: Tensor, options?: GaussianNllLossOptions): Tensor {
    return callTensor(this[owner], "Tensor.gaussian_nll_loss", [this, Y, variance, options]);
  }

  /**
   * Y's negative log-likelihood under Poisson distributions with means exp(this), or this without
   * `logInput` (then log(this + eps) is taken).
   *
   * `full`: with Stirling's approximation of log(Y!), where Y is above 1.
   * Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([0]).poissonNllLoss(new Tensor([2])).item(); // 1
   * ```
   */
  poissonNllLoss(Y: Tensor, options?: PoissonNllLossOptions): Tensor {
    return callTensor(this[owner], "Tensor.poisson_nll_loss", [this, Y, options]);
  }

  /**
   * Connectionist temporal classification (Graves et al., 2006) of log-probabilities.
   *
   * this: (t, n, classes), or (t, classes).
   *
   * targets: (n, s) integers, or all one after the other (which reads the lengths); no `blank`s.
   * Lengths: n integers each. 'mean' divides each loss by its target's length first. A target that is
   * too long has an infinite loss, 0 with `zeroInfinity`. There is a kernel for each of the t steps.
   * Throws ShapeError, DTypeError, ArgumentError.
   *
   * ```js
   * const logs = new Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log();
   * await logs.ctcLoss(new Tensor([[1]], { dtype: "int32" }), [2], [1]).item(); // ≈ 0.28768
   * ```
   */
  ctcLoss(
    ...args:
      | [targets: Tensor, inputLengths: Operand, targetLengths: Operand, options?: CtcLossOptions]
      | [
          targets: Tensor,
          inputLengths: Operand,
          targetLengths: Operand,
          blank: number,
          options?: CtcLossOptions,
        ]
      | [
          targets: Tensor,
          inputLengths: Operand,
          targetLengths: Operand,
          blank: number,
          reduction: "mean" | "sum" | "none",
          options?: CtcLossOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.ctc_loss", [this, ...args]);
  }

  /**
   * The elements along `dim` in order, stably, and their positions (int32). NaN is the greatest.
   *
   * Equal elements have gradients of their own, as torch's; tinygrad's share them.
   *
   * ```js
   * await Promise.all(new Tensor([3, 1, 2]).sort().map((t) => t.tolist())); // [[1, 2, 3], [1, 2, 0]]
   * ```
   */
  sort(...args: [options?: SortOptions] | [dim: number, options?: SortOptions]): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.sort", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The positions (int32) that sort `dim`.
   *
   * ```js
   * await new Tensor([3, 1, 2]).argsort().tolist(); // [1, 2, 0]
   * ```
   */
  argsort(...args: [options?: ArgsortOptions] | [dim: number, options?: ArgsortOptions]): Tensor<"int32"> {
    return callTensor(this[owner], "Tensor.argsort", [this, ...args]);
  }

  /**
   * The q-th quantiles (0 to 1) along `axis`, of all elements when null; several q are a first axis.
   *
   * Between two elements: `interpolation` 'linear', 'lower', 'higher', 'nearest' (halves to the even
   * position) or 'midpoint'. NaN where there is one. Throws ArgumentError, ShapeError.
   *
   * ```js
   * await new Tensor([1, 2, 3, 4]).quantile(0.5).item(); // 2.5
   * ```
   */
  quantile(
    ...args:
      | [q: number | readonly number[], options?: QuantileOptions]
      | [q: number | readonly number[], axis: number | null, options?: QuantileOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.quantile", [this, ...args]);
  }

  /**
   * The middle element, the lesser of the two middle ones of an even number: of all elements, a Tensor.
   *
   * With `axis`: the middle elements along it, and their positions (int32). As torch's; numpy's, between
   * the two middle ones, is `quantile(0.5, axis)`. NaN where there is one. Throws AxisError, ShapeError.
   *
   * ```js
   * await new Tensor([4, 1, 3, 2]).median().item(); // 2
   * await Promise.all(new Tensor([[4, 1, 3, 2]]).median(1).map((t) => t.tolist())); // [[2], [3]]
   * ```
   */
  median(
    ...args: [options: MedianOptions & { readonly axis: number }] | [axis: number, options?: MedianOptions]
  ): [Tensor, Tensor];
  median(...args: [options?: MedianOptions & { readonly axis?: null }]): Tensor;
  median(
    ...args: [options?: MedianOptions] | [axis: number | null, options?: MedianOptions]
  ): Tensor | [Tensor, Tensor] {
    return callTensorOrPair(this[owner], "Tensor.median", [this, ...args], "axis", 1);
  }

  /**
   * The k-th least element (1 is the least) along `dim`, and its position (int32). NaN is the greatest.
   *
   * Throws AxisError, ArgumentError.
   *
   * ```js
   * await Promise.all(new Tensor([3, 1, 2]).kthvalue(2).map((t) => t.item())); // [2, 2]
   * ```
   */
  kthvalue(
    ...args: [k: number, options?: KthvalueOptions] | [k: number, dim: number, options?: KthvalueOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.kthvalue", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The most frequent element along `dim`, the least of several, and its last position (int32).
   *
   * Throws AxisError, ShapeError.
   *
   * ```js
   * await Promise.all(new Tensor([2, 3, 1, 3, 2]).mode().map((t) => t.item())); // [2, 4]
   * ```
   */
  mode(...args: [options?: ModeOptions] | [dim: number, options?: ModeOptions]): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.mode", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The insert positions (int32) of `values` (..., m) in this ascending Tensor (..., n), before equal
   * elements.
   *
   * `right`: behind them. A 1-D Tensor serves values of any shape. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 3, 5]).searchsorted(new Tensor([3, 4], { dtype: "int32" })).tolist(); // [1, 2]
   * ```
   */
  searchsorted(values: Operand, options?: SearchsortedOptions): Tensor {
    return callTensor(this[owner], "Tensor.searchsorted", [this, values, options]);
  }

  /**
   * How often 0, 1, ... up to the greatest element occur in this 1-D Tensor of integers of at least 0.
   *
   * `weights`, of its shape, are summed instead of counts. `minlength`: the least number of counts. The
   * greatest element is read now. Throws ShapeError, DTypeError, ArgumentError for a negative element.
   *
   * ```js
   * await new Tensor([0, 2, 2], { dtype: "int32" }).bincount().tolist(); // [1, 0, 2]
   * ```
   */
  bincount(
    ...args:
      | [options?: BincountOptions]
      | [weights: Tensor | null, options?: BincountOptions]
      | [weights: Tensor | null, minlength: number, options?: BincountOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.bincount", [this, ...args]);
  }

  /**
   * How many elements (in this dtype) fall into each of `bins` equal intervals from `min` to `max`.
   *
   * Both 0: from the least to the greatest element. Elements outside, and NaN, are not counted; `max`
   * itself is in the last interval. Throws ArgumentError.
   *
   * ```js
   * await new Tensor([1, 2, 1]).histc(2, 0, 4).tolist(); // [2, 1]
   * ```
   */
  histc(
    ...args:
      | [options?: HistcOptions]
      | [bins: number, options?: HistcOptions]
      | [bins: number, min: number, options?: HistcOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.histc", [this, ...args]);
  }

  /**
   * The k greatest (least) along `dim`, in order, and their positions. Throws ArgumentError.
   *
   * ```js
   * await Promise.all(new Tensor([1, 5, 3]).topk(2).map((t) => t.tolist())); // [[5, 3], [1, 2]]
   * ```
   */
  topk(
    ...args: [k: number, options?: TopkOptions] | [k: number, dim: number, options?: TopkOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.topk", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * Whether each element is one of `elements`.
   *
   * ```js
   * await new Tensor([1, 2, 3]).isin([3, 1]).tolist(); // [true, false, true]
   * ```
   */
  isin(elements: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isin", [this, elements]);
  }

  /**
   * The slice at `index` along `dim`, without that axis: a view. Throws AxisError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).select(1, 0).tolist(); // [1, 3]
   * ```
   */
  select(dim: number, index: number): Tensor<D> {
    return callTensor(this[owner], "Tensor.select", [this, dim, index]);
  }

  /**
   * The slices along `dim`, each without that axis. Throws AxisError.
   *
   * ```js
   * await Promise.all(new Tensor([[1, 2], [3, 4]]).unbind().map((t) => t.tolist())); // [[1, 2], [3, 4]]
   * ```
   */
  unbind(...args: [options?: UnbindOptions] | [dim: number, options?: UnbindOptions]): Tensor<D>[] {
    return callParts(this[owner], "Tensor.unbind", [this, ...args]) as Tensor<D>[];
  }

  /**
   * The slices at the positions `index` (one axis of integers) along `dim`. Throws AxisError,
   * ShapeError.
   *
   * ```js
   * await new Tensor([[1, 2, 3], [4, 5, 6]]).indexSelect(1, new Tensor([2, 0], { dtype: "int32" })).tolist(); // [[3, 1], [6, 4]]
   * ```
   */
  indexSelect(dim: number, index: Tensor): Tensor<D> {
    return callTensor(this[owner], "Tensor.index_select", [this, dim, index]);
  }

  /**
   * The elements at positions counted over the whole Tensor, in the shape of `index`.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).take(new Tensor([3, 0], { dtype: "int32" })).tolist(); // [4, 1]
   * ```
   */
  take(index: Tensor): Tensor<D> {
    return callTensor(this[owner], "Tensor.take", [this, index]);
  }

  /**
   * The elements where `mask` (bool, broadcast with this) holds, in row-major order, 1-D.
   *
   * Without `size`, the count is read from the device. With it, the result has `size` elements: the first
   * ones, padded with `fillValue`. Throws DTypeError, ShapeError.
   *
   * ```js
   * await new Tensor([1, 2, 3]).maskedSelect(new Tensor([true, false, true])).tolist(); // [1, 3]
   * ```
   */
  maskedSelect(
    ...args:
      | [mask: Tensor, options?: MaskedSelectOptions]
      | [mask: Tensor, size: number | null, options?: MaskedSelectOptions]
      | [mask: Tensor, size: number | null, fillValue: Scalar, options?: MaskedSelectOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.masked_select", [this, ...args]);
  }

  /**
   * The positions of elements that are not 0, in row-major order: (count, axes), int32.
   *
   * Without `size`, the count is read from the device. With it, the result has `size` rows: the first
   * ones, padded with `fillValue`.
   *
   * ```js
   * await new Tensor([[0, 1], [2, 0]]).nonzero().tolist(); // [[0, 1], [1, 0]]
   * ```
   */
  nonzero(
    ...args:
      | [options?: NonzeroOptions]
      | [size: number | null, options?: NonzeroOptions]
      | [size: number | null, fillValue: number, options?: NonzeroOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.nonzero", [this, ...args]);
  }

  /**
   * The positions of elements that are not 0, in row-major order: (count, axes), int32.
   *
   * Without `size`, the count is read from the device. With it, the result has `size` rows: the first
   * ones, padded with `fillValue`.
   *
   * ```js
   * await new Tensor([[0, 1], [2, 0]]).nonzero().tolist(); // [[0, 1], [1, 0]]
   * ```
   */
  argwhere(
    ...args:
      | [options?: ArgwhereOptions]
      | [size: number | null, options?: ArgwhereOptions]
      | [size: number | null, fillValue: number, options?: ArgwhereOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.argwhere", [this, ...args]);
  }

  /**
   * out[..., i, ...] = this[..., index[..., i, ...], ...] along `dim`.
   *
   * The result has the shape of `index`, which may be smaller than this on the other axes. Throws
   * ShapeError, DTypeError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).gather(1, new Tensor([[1], [0]], { dtype: "int32" })).tolist(); // [[2], [3]]
   * ```
   */
  gather(dim: number, index: Tensor): Tensor<D> {
    return callTensor(this[owner], "Tensor.gather", [this, dim, index]);
  }

  /**
   * The elements at `indices` along `dim`, of broadcast shapes; null: over the whole Tensor.
   *
   * Throws AxisError, ShapeError.
   *
   * ```js
   * await new Tensor([[3, 1], [2, 4]]).takeAlongDim(new Tensor([[1], [0]], { dtype: "int32" }), 1).tolist(); // [[1], [2]]
   * ```
   */
  takeAlongDim(
    ...args:
      | [indices: Tensor, options?: TakeAlongDimOptions]
      | [indices: Tensor, dim: number | null, options?: TakeAlongDimOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.take_along_dim", [this, ...args]);
  }

  /**
   * this with src[..., i, ...] written at index[..., i, ...] along `dim`; the last writer wins.
   *
   * `reduce`: 'add' or 'multiply' combine with the old elements. src: a Tensor or a scalar. Throws
   * ShapeError, DTypeError, ArgumentError.
   *
   * ```js
   * await Tensor.zeros(3).scatter(0, new Tensor([2, 0], { dtype: "int32" }), new Tensor([5, 6])).tolist(); // [6, 0, 5]
   * ```
   */
  scatter(
    ...args:
      | [dim: number, index: Tensor, src: Tensor | Scalar, options?: ScatterOptions]
      | [
          dim: number,
          index: Tensor,
          src: Tensor | Scalar,
          reduce: "add" | "multiply" | null,
          options?: ScatterOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.scatter", [this, ...args]);
  }

  /**
   * `scatter` with all writers combined: `reduce` is 'sum', 'prod', 'mean', 'amax' or 'amin'.
   *
   * `includeSelf`: combine with the old elements too. Throws ShapeError, DTypeError, ArgumentError.
   *
   * ```js
   * await Tensor.zeros(2).scatterReduce(0, new Tensor([0, 0], { dtype: "int32" }), new Tensor([5, 6]), "sum").tolist(); // [11, 0]
   * ```
   */
  scatterReduce(
    dim: number,
    index: Tensor,
    src: Tensor,
    reduce: "sum" | "prod" | "mean" | "amax" | "amin",
    options?: ScatterReduceOptions,
  ): Tensor {
    return callTensor(this[owner], "Tensor.scatter_reduce", [this, dim, index, src, reduce, options]);
  }

  /**
   * this, with the elements of `src` added at the positions `index` along `dim`.
   *
   * Throws AxisError, ShapeError.
   *
   * ```js
   * await new Tensor([1, 1]).scatterAdd(0, new Tensor([1, 1], { dtype: "int32" }), new Tensor([2, 3])).tolist(); // [1, 6]
   * ```
   */
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.scatter_add", [this, dim, index, src]);
  }

  /**
   * this, with alpha * source's slices along `dim` added to the slices at the positions `index`.
   *
   * Throws AxisError, ShapeError.
   *
   * ```js
   * await new Tensor([[1], [1]]).indexAdd(0, new Tensor([1, 1], { dtype: "int32" }), new Tensor([[2], [3]])).tolist(); // [[1], [6]]
   * ```
   */
  indexAdd(
    ...args:
      | [dim: number, index: Tensor, source: Tensor, options?: IndexAddOptions]
      | [dim: number, index: Tensor, source: Tensor, alpha: number, options?: IndexAddOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.index_add", [this, ...args]);
  }

  /**
   * this, with `value` in the slices along `dim` at the positions `index`. Throws AxisError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).indexFill(1, new Tensor([0], { dtype: "int32" }), 9).tolist(); // [[9, 2], [9, 4]]
   * ```
   */
  indexFill(dim: number, index: Tensor, value: number): Tensor {
    return callTensor(this[owner], "Tensor.index_fill", [this, dim, index, value]);
  }

  /**
   * Whether each integer equals class j: bool, with j along a new axis `axis` of the result.
   *
   * ```js
   * await new Tensor([0, 2], { dtype: "int32" }).isClass(3, -1).tolist(); // [[true, false, false], [false, false, true]]
   * ```
   */
  isClass(numClasses: Size, axis: number): Tensor {
    return callTensor(this[owner], "Tensor.is_class", [this, numClasses, axis]);
  }

  /**
   * 1 (int32) at the class of each integer, along a new last axis. An integer out of range gives zeros;
   * torch refuses it.
   *
   * Throws DTypeError, ArgumentError.
   *
   * ```js
   * await new Tensor([0, 2], { dtype: "int32" }).oneHot(3).tolist(); // [[1, 0, 0], [0, 0, 1]]
   * ```
   */
  oneHot(numClasses: number): Tensor {
    return callTensor(this[owner], "Tensor.one_hot", [this, numClasses]);
  }

  /**
   * Restart all random numbers: the same seed gives the same bits, on every device.
   *
   * ```js
   * Tensor.manualSeed(1);
   * const a = Tensor.rand(3);
   * Tensor.manualSeed(1);
   * await Tensor.rand(3).eq(a).tolist(); // [true, true, true]
   * ```
   */
  static manualSeed(
    ...args: [options?: ManualSeedOptions] | [seed: number, options?: ManualSeedOptions]
  ): void {
    callVoid(this.bound, "Tensor.manual_seed", [...args]);
  }

  /**
   * Uniform in [0, 1): every multiple of 2^-24 (float32) is equally likely.
   *
   * Throws DTypeError, ShapeError.
   *
   * ```js
   * (await Tensor.rand(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static rand(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<RandOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<RandOptions>]
  ): Tensor<"float32">;
  static rand(
    ...args:
      | [shape: readonly Size[], options?: RandOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: RandOptions]
  ): Tensor;
  static rand(
    ...args:
      | [shape: readonly Size[], options?: RandOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: RandOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.rand", [...args]);
  }

  /**
   * Normal with mean 0 and variance 1 (Box and Muller, 1958).
   *
   * A number of up to 32 bits takes one draw of 64 bits, a float64 two.
   *
   * ```js
   * (await Tensor.randn(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static randn(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<RandnOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<RandnOptions>]
  ): Tensor<"float32">;
  static randn(
    ...args:
      | [shape: readonly Size[], options?: RandnOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: RandnOptions]
  ): Tensor;
  static randn(
    ...args:
      | [shape: readonly Size[], options?: RandnOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: RandnOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.randn", [...args]);
  }

  /**
   * Integers uniform in [low, high). The bias of a range of n is below n / 2^32 (n / 2^64 above 2^31).
   *
   * Throws ArgumentError for an empty range or one that does not fit, DTypeError.
   *
   * ```js
   * await Tensor.randint(4, { low: 7, high: 8 }).tolist(); // [7, 7, 7, 7]
   * ```
   */
  static randint(
    ...args:
      | [shape: readonly Size[], options?: RandintOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: RandintOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.randint", [...args]);
  }

  /**
   * Normal with `mean` and standard deviation `std`. Throws ArgumentError for a negative one.
   *
   * ```js
   * (await Tensor.normal(2, 3, { mean: 1, std: 2 }).ready()).shape; // [2, 3]
   * ```
   */
  static normal(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<NormalOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<NormalOptions>]
  ): Tensor<"float32">;
  static normal(
    ...args:
      | [shape: readonly Size[], options?: NormalOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: NormalOptions]
  ): Tensor;
  static normal(
    ...args:
      | [shape: readonly Size[], options?: NormalOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: NormalOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.normal", [...args]);
  }

  /**
   * Uniform in [low, high); of an integer dtype, rounded towards 0.
   *
   * Throws ArgumentError where low > high.
   *
   * ```js
   * (await Tensor.uniform(2, 3, { low: -1, high: 1 }).ready()).shape; // [2, 3]
   * ```
   */
  static uniform(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<UniformOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<UniformOptions>]
  ): Tensor<"float32">;
  static uniform(
    ...args:
      | [shape: readonly Size[], options?: UniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: UniformOptions]
  ): Tensor;
  static uniform(
    ...args:
      | [shape: readonly Size[], options?: UniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: UniformOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.uniform", [...args]);
  }

  /**
   * Uniform in ±1 / sqrt(number of elements).
   *
   * ```js
   * (await Tensor.scaledUniform(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static scaledUniform(
    ...args:
      | [shape: readonly Size[], options?: ScaledUniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: ScaledUniformOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.scaled_uniform", [...args]);
  }

  /**
   * Uniform in ±sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010).
   *
   * ```js
   * (await Tensor.glorotUniform(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static glorotUniform(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<GlorotUniformOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<GlorotUniformOptions>]
  ): Tensor<"float32">;
  static glorotUniform(
    ...args:
      | [shape: readonly Size[], options?: GlorotUniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: GlorotUniformOptions]
  ): Tensor;
  static glorotUniform(
    ...args:
      | [shape: readonly Size[], options?: GlorotUniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: GlorotUniformOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.glorot_uniform", [...args]);
  }

  /**
   * Uniform in ±sqrt(6 / (1 + a²) / fan in) (He et al., 2015).
   *
   * ```js
   * (await Tensor.kaimingUniform(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static kaimingUniform(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<KaimingUniformOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<KaimingUniformOptions>]
  ): Tensor<"float32">;
  static kaimingUniform(
    ...args:
      | [shape: readonly Size[], options?: KaimingUniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: KaimingUniformOptions]
  ): Tensor;
  static kaimingUniform(
    ...args:
      | [shape: readonly Size[], options?: KaimingUniformOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: KaimingUniformOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.kaiming_uniform", [...args]);
  }

  /**
   * Normal with variance 2 / (1 + a²) / fan in (He et al., 2015).
   *
   * ```js
   * (await Tensor.kaimingNormal(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static kaimingNormal(
    ...args:
      | [shape: readonly Size[], options?: KaimingNormalOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: KaimingNormalOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.kaiming_normal", [...args]);
  }

  /**
   * `rand` in this Tensor's shape, by default with its dtype and on its device.
   *
   * ```js
   * (await Tensor.zeros(2, 3).randLike().ready()).shape; // [2, 3]
   * ```
   */
  randLike(options?: RandLikeOptions): Tensor {
    return callTensor(this[owner], "Tensor.rand_like", [this, options]);
  }

  /**
   * `randn` in this Tensor's shape, by default with its dtype and on its device.
   *
   * ```js
   * (await Tensor.zeros(2, 3).randnLike().ready()).shape; // [2, 3]
   * ```
   */
  randnLike(
    ...args: [options?: RandnLikeOptions] | [dtype: DTypeName | null, options?: RandnLikeOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.randn_like", [this, ...args]);
  }

  /**
   * A random order of 0..n-1: the rank of each of n draws. Work grows with n². 1-D.
   *
   * Throws ArgumentError.
   *
   * ```js
   * const [order, places] = Tensor.randperm(5).sort();
   * await order.tolist(); // [0, 1, 2, 3, 4]
   * ```
   */
  static randperm(
    ...args:
      | [n: number, options?: RandpermOptions]
      | [n: number, device: string | null, options?: RandpermOptions]
      | [n: number, device: string | null, dtype: DTypeName, options?: RandpermOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.randperm", [...args]);
  }

  /**
   * Positions (int32) drawn with these (unnormalised) probabilities, along the last of 1 or 2 axes.
   *
   * Without `replacement` they are different, and there must be as many probabilities above 0 (an
   * ArgumentError with `CHECK=1`; else those of 0 come last). Throws ShapeError, ArgumentError.
   *
   * ```js
   * await new Tensor([0, 1]).multinomial().tolist(); // [1]
   * ```
   */
  multinomial(
    ...args: [options?: MultinomialOptions] | [numSamples: number, options?: MultinomialOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.multinomial", [this, ...args]);
  }

  /**
   * 1 with these probabilities, else 0, in this dtype.
   *
   * ```js
   * await new Tensor([0, 1]).bernoulli().tolist(); // [0, 1]
   * ```
   */
  bernoulli(): Tensor {
    return callTensor(this[owner], "Tensor.bernoulli", [this]);
  }

  /**
   * Running sums along `axis`.
   *
   * ```js
   * await new Tensor([1, 2, 3]).cumsum().tolist(); // [1, 3, 6]
   * ```
   */
  cumsum(...args: [options?: CumsumOptions] | [axis: number, options?: CumsumOptions]): Tensor {
    return callTensor(this[owner], "Tensor.cumsum", [this, ...args]);
  }

  /**
   * Running products along `axis`.
   *
   * ```js
   * await new Tensor([1, 2, 3]).cumprod(0).tolist(); // [1, 2, 6]
   * ```
   */
  cumprod(axis: number): Tensor {
    return callTensor(this[owner], "Tensor.cumprod", [this, axis]);
  }

  /**
   * Running maxima along `axis`, and the positions (int32) where they are, the last of equals.
   *
   * NaN is the greatest.
   *
   * Of equals tinygrad takes the first position, torch the last, as here.
   *
   * ```js
   * await Promise.all(new Tensor([1, 3, 2, 5]).cummax().map((t) => t.tolist())); // [[1, 3, 3, 5], [0, 1, 1, 3]]
   * ```
   */
  cummax(...args: [options?: CummaxOptions] | [axis: number, options?: CummaxOptions]): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.cummax", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * Running minima along `axis`, and the positions (int32) where they are, the last of equals.
   *
   * NaN is the least.
   *
   * Of equals tinygrad takes the first position, torch the last, as here.
   *
   * ```js
   * await Promise.all(new Tensor([4, 3, 5, 1]).cummin().map((t) => t.tolist())); // [[4, 3, 3, 1], [0, 1, 1, 3]]
   * ```
   */
  cummin(...args: [options?: CumminOptions] | [axis: number, options?: CumminOptions]): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.cummin", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * Running logsumexp along `axis`.
   *
   * ```js
   * await new Tensor([0, 0]).logcumsumexp().tolist(); // ≈ [0, 0.69314]
   * ```
   */
  logcumsumexp(
    ...args: [options?: LogcumsumexpOptions] | [axis: number, options?: LogcumsumexpOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.logcumsumexp", [this, ...args]);
  }

  /**
   * The differences between neighbours along `dim`, n times over. Throws ArgumentError, AxisError.
   *
   * ```js
   * await new Tensor([1, 4, 9]).diff().tolist(); // [3, 5]
   * ```
   */
  diff(
    ...args:
      | [options?: DiffOptions]
      | [n: number, options?: DiffOptions]
      | [n: number, dim: number, options?: DiffOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.diff", [this, ...args]);
  }

  /**
   * max(this, 0), and NaN of NaN; its gradient at 0 is 0.
   *
   * ```js
   * await new Tensor([-1, 2]).relu().tolist(); // [0, 2]
   * ```
   */
  relu(): Tensor<WithNumber[D]> {
    return callTensor(this[owner], "Tensor.relu", [this]);
  }

  /**
   * this clipped to 0..6.
   *
   * ```js
   * await new Tensor([-1, 8]).relu6().tolist(); // [0, 6]
   * ```
   */
  relu6(): Tensor {
    return callTensor(this[owner], "Tensor.relu6", [this]);
  }

  /**
   * this where positive, else `negSlope` * this.
   *
   * ```js
   * await new Tensor([1, -1]).leakyRelu(0.5).tolist(); // [1, -0.5]
   * ```
   */
  leakyRelu(
    ...args: [options?: LeakyReluOptions] | [negSlope: number, options?: LeakyReluOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.leaky_relu", [this, ...args]);
  }

  /**
   * this clipped to `minVal`..`maxVal`; the gradient is 0 at both.
   *
   * ```js
   * await new Tensor([-2, 0.5]).hardtanh().tolist(); // [-1, 0.5]
   * ```
   */
  hardtanh(
    ...args:
      | [options?: HardtanhOptions]
      | [minVal: number, options?: HardtanhOptions]
      | [minVal: number, maxVal: number, options?: HardtanhOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.hardtanh", [this, ...args]);
  }

  /**
   * alpha * this + beta clipped to 0..1.
   *
   * ```js
   * await new Tensor([-6, 0, 6]).hardsigmoid().tolist(); // [0, 0.5, 1]
   * ```
   */
  hardsigmoid(
    ...args:
      | [options?: HardsigmoidOptions]
      | [alpha: number, options?: HardsigmoidOptions]
      | [alpha: number, beta: number, options?: HardsigmoidOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.hardsigmoid", [this, ...args]);
  }

  /**
   * this * relu6(this + 3) / 6.
   *
   * ```js
   * await new Tensor([-6, 6]).hardswish().tolist(); // [0, 6]
   * ```
   */
  hardswish(): Tensor {
    return callTensor(this[owner], "Tensor.hardswish", [this]);
  }

  /**
   * 1 / (1 + exp(-this)).
   *
   * ```js
   * await new Tensor([0, 1]).sigmoid().tolist(); // ≈ [0.5, 0.73105]
   * ```
   */
  sigmoid(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.sigmoid", [this]);
  }

  /**
   * log(sigmoid(this)), without overflow.
   *
   * ```js
   * await new Tensor([0]).logsigmoid().tolist(); // ≈ [-0.69314]
   * ```
   */
  logsigmoid(): Tensor {
    return callTensor(this[owner], "Tensor.logsigmoid", [this]);
  }

  /**
   * The hyperbolic tangent, within 4 ulp.
   *
   * ```js
   * await new Tensor([1]).tanh().tolist(); // ≈ [0.76159]
   * ```
   */
  tanh(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.tanh", [this]);
  }

  /**
   * this * Phi(this); `approximate` is 'tanh' or 'none' (the error function). Throws ArgumentError.
   *
   * 'tanh' is tinygrad's default; torch's is 'none'.
   *
   * ```js
   * await new Tensor([1]).gelu().tolist(); // ≈ [0.84119]
   * ```
   */
  gelu(
    ...args: [options?: GeluOptions] | [approximate: "tanh" | "none", options?: GeluOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.gelu", [this, ...args]);
  }

  /**
   * this * sigmoid(1.702 this).
   *
   * ```js
   * await new Tensor([1]).quickGelu().tolist(); // ≈ [0.84579]
   * ```
   */
  quickGelu(): Tensor {
    return callTensor(this[owner], "Tensor.quick_gelu", [this]);
  }

  /**
   * this * sigmoid(this).
   *
   * ```js
   * await new Tensor([1]).swish().tolist(); // ≈ [0.73105]
   * ```
   */
  swish(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.swish", [this]);
  }

  /**
   * this * sigmoid(this).
   *
   * ```js
   * await new Tensor([1]).silu().tolist(); // ≈ [0.73105]
   * ```
   */
  silu(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.silu", [this]);
  }

  /**
   * this where positive, else alpha * (exp(this) - 1), by `expm1`.
   *
   * ```js
   * await new Tensor([1, -1]).elu().tolist(); // ≈ [1, -0.63212]
   * ```
   */
  elu(...args: [options?: EluOptions] | [alpha: number, options?: EluOptions]): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.elu", [this, ...args]);
  }

  /**
   * max(this, 0) + min(0, alpha * (exp(this / alpha) - 1)).
   *
   * ```js
   * await new Tensor([1, -1]).celu().tolist(); // ≈ [1, -0.63212]
   * ```
   */
  celu(...args: [options?: CeluOptions] | [alpha: number, options?: CeluOptions]): Tensor {
    return callTensor(this[owner], "Tensor.celu", [this, ...args]);
  }

  /**
   * gamma * (this where positive, else alpha * (exp(this) - 1)).
   *
   * ```js
   * await new Tensor([1, -1]).selu().tolist(); // ≈ [1.0507, -1.11133]
   * ```
   */
  selu(
    ...args:
      | [options?: SeluOptions]
      | [alpha: number, options?: SeluOptions]
      | [alpha: number, gamma: number, options?: SeluOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.selu", [this, ...args]);
  }

  /**
   * log(1 + exp(beta * this)) / beta, without overflow.
   *
   * ```js
   * await new Tensor([0]).softplus().tolist(); // ≈ [0.69314]
   * ```
   */
  softplus(
    ...args: [options?: SoftplusOptions] | [beta: number, options?: SoftplusOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.softplus", [this, ...args]);
  }

  /**
   * this * tanh(softplus(this)).
   *
   * ```js
   * await new Tensor([1]).mish().tolist(); // ≈ [0.86509]
   * ```
   */
  mish(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.mish", [this]);
  }

  /**
   * this / (1 + |this|).
   *
   * ```js
   * await new Tensor([1, -3]).softsign().tolist(); // [0.5, -0.75]
   * ```
   */
  softsign(): Tensor {
    return callTensor(this[owner], "Tensor.softsign", [this]);
  }

  /**
   * 0 where the magnitude is at most `lambd`.
   *
   * ```js
   * await new Tensor([-1, 0.25]).hardshrink().tolist(); // [-1, 0]
   * ```
   */
  hardshrink(...args: [options?: HardshrinkOptions] | [lambd: number, options?: HardshrinkOptions]): Tensor {
    return callTensor(this[owner], "Tensor.hardshrink", [this, ...args]);
  }

  /**
   * `lambd` nearer to 0, and 0 where the magnitude is at most that.
   *
   * ```js
   * await new Tensor([-1, 0.25]).softshrink().tolist(); // [-0.5, 0]
   * ```
   */
  softshrink(...args: [options?: SoftshrinkOptions] | [lambd: number, options?: SoftshrinkOptions]): Tensor {
    return callTensor(this[owner], "Tensor.softshrink", [this, ...args]);
  }

  /**
   * this - tanh(this).
   *
   * ```js
   * await new Tensor([0, 2]).tanhshrink().tolist(); // ≈ [0, 1.0359]
   * ```
   */
  tanhshrink(): Tensor {
    return callTensor(this[owner], "Tensor.tanhshrink", [this]);
  }

  /**
   * `value` where this is not greater than `threshold`.
   *
   * ```js
   * await new Tensor([0.5, 2]).threshold(1, 9).tolist(); // [9, 2]
   * ```
   */
  threshold(threshold: number, value: number): Tensor {
    return callTensor(this[owner], "Tensor.threshold", [this, threshold, value]);
  }

  /**
   * this where it is at least 0, else this * weight: one, or one for each channel (axis 1).
   *
   * Throws ShapeError.
   *
   * ```js
   * await new Tensor([-2, 3]).prelu(new Tensor([0.25])).tolist(); // [-0.5, 3]
   * ```
   */
  prelu(weight: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.prelu", [this, weight]);
  }

  /**
   * exp(this) / sum(exp(this)) along `axis`, without overflow. `dtype`: of the result.
   *
   * ```js
   * await new Tensor([0, 0]).softmax().tolist(); // [0.5, 0.5]
   * ```
   */
  softmax(
    ...args:
      | [options?: Undetermined<SoftmaxOptions>]
      | [axis: number | readonly number[] | null, options?: Undetermined<SoftmaxOptions>]
      | [axis: number | readonly number[] | null, dtype: null, options?: Undetermined<SoftmaxOptions>]
  ): Tensor<FloatOf[D]>;
  softmax(
    ...args:
      | [options?: SoftmaxOptions]
      | [axis: number | readonly number[] | null, options?: SoftmaxOptions]
      | [axis: number | readonly number[] | null, dtype: DTypeName | null, options?: SoftmaxOptions]
  ): Tensor;
  softmax(
    ...args:
      | [options?: SoftmaxOptions]
      | [axis: number | readonly number[] | null, options?: SoftmaxOptions]
      | [axis: number | readonly number[] | null, dtype: DTypeName | null, options?: SoftmaxOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.softmax", [this, ...args]);
  }

  /**
   * The logarithm of softmax, without overflow.
   *
   * ```js
   * await new Tensor([0, 1]).logSoftmax().tolist(); // ≈ [-1.31326, -0.31326]
   * ```
   */
  logSoftmax(
    ...args:
      | [options?: Undetermined<LogSoftmaxOptions>]
      | [axis: number | readonly number[] | null, options?: Undetermined<LogSoftmaxOptions>]
      | [axis: number | readonly number[] | null, dtype: null, options?: Undetermined<LogSoftmaxOptions>]
  ): Tensor<FloatOf[D]>;
  logSoftmax(
    ...args:
      | [options?: LogSoftmaxOptions]
      | [axis: number | readonly number[] | null, options?: LogSoftmaxOptions]
      | [axis: number | readonly number[] | null, dtype: DTypeName | null, options?: LogSoftmaxOptions]
  ): Tensor;
  logSoftmax(
    ...args:
      | [options?: LogSoftmaxOptions]
      | [axis: number | readonly number[] | null, options?: LogSoftmaxOptions]
      | [axis: number | readonly number[] | null, dtype: DTypeName | null, options?: LogSoftmaxOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.log_softmax", [this, ...args]);
  }

  /**
   * softmax of -this.
   *
   * ```js
   * await new Tensor([0, 0]).softmin().tolist(); // [0.5, 0.5]
   * ```
   */
  softmin(
    ...args:
      | [options?: SoftminOptions]
      | [axis: number | readonly number[] | null, options?: SoftminOptions]
      | [axis: number | readonly number[] | null, dtype: DTypeName | null, options?: SoftminOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.softmin", [this, ...args]);
  }

  /**
   * The first half along `dim` times the sigmoid of the second (Dauphin et al., 2017).
   *
   * Throws AxisError, ShapeError for an odd size.
   *
   * ```js
   * await new Tensor([3, 0]).glu().tolist(); // [1.5]
   * ```
   */
  glu(...args: [options?: GluOptions] | [dim: number, options?: GluOptions]): Tensor {
    return callTensor(this[owner], "Tensor.glu", [this, ...args]);
  }

  /**
   * The sum.
   *
   * Small integers add up in int32 or uint32, 16-bit floats in float32 (the result is 16-bit again).
   * `dtype`: of the result.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).sum(0).tolist(); // [4, 6]
   * ```
   */
  sum(
    ...args:
      | [options?: Undetermined<SumOptions>]
      | [axis: number | readonly number[] | null, options?: Undetermined<SumOptions>]
  ): Tensor<ReducedDType[D]>;
  sum(
    ...args: [options?: SumOptions] | [axis: number | readonly number[] | null, options?: SumOptions]
  ): Tensor;
  sum(
    ...args: [options?: SumOptions] | [axis: number | readonly number[] | null, options?: SumOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.sum", [this, ...args]);
  }

  /**
   * The sum of all elements except NaN. Throws AxisError.
   *
   * ```js
   * await new Tensor([1, NaN, 2]).nansum().item(); // 3
   * ```
   */
  nansum(
    ...args: [options?: NansumOptions] | [axis: number | readonly number[] | null, options?: NansumOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.nansum", [this, ...args]);
  }

  /**
   * The product, in the dtype of a sum.
   *
   * ```js
   * await new Tensor([2, 3, 4]).prod().item(); // 24
   * ```
   */
  prod(
    ...args:
      | [options?: Undetermined<ProdOptions>]
      | [axis: number | readonly number[] | null, options?: Undetermined<ProdOptions>]
  ): Tensor<ReducedDType[D]>;
  prod(
    ...args: [options?: ProdOptions] | [axis: number | readonly number[] | null, options?: ProdOptions]
  ): Tensor;
  prod(
    ...args: [options?: ProdOptions] | [axis: number | readonly number[] | null, options?: ProdOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.prod", [this, ...args]);
  }

  /**
   * The greatest element; NaN if there is one. The gradient is shared evenly between equals.
   *
   * Throws ShapeError.
   *
   * Values alone, as tinygrad's; torch's `max(axis)` is `(x.max(axis), x.argmax(axis))`.
   *
   * ```js
   * await new Tensor([[1, 5], [7, 2]]).max(1).tolist(); // [5, 7]
   * ```
   */
  max(
    ...args: [options?: MaxOptions] | [axis: number | readonly number[] | null, options?: MaxOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.max", [this, ...args]);
  }

  /**
   * The greatest element; NaN if there is one. The gradient is shared evenly between equals.
   *
   * Throws ShapeError.
   *
   * Values alone, as tinygrad's; torch's `max(axis)` is `(x.max(axis), x.argmax(axis))`.
   *
   * ```js
   * await new Tensor([[1, 5], [7, 2]]).max(1).tolist(); // [5, 7]
   * ```
   */
  amax(
    ...args: [options?: AmaxOptions] | [axis: number | readonly number[] | null, options?: AmaxOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.amax", [this, ...args]);
  }

  /**
   * The least element; NaN if there is one. Throws ShapeError.
   *
   * Values alone, as tinygrad's; torch's `min(axis)` is `(x.min(axis), x.argmin(axis))`.
   *
   * ```js
   * await new Tensor([[1, 5], [7, 2]]).min(1).tolist(); // [1, 2]
   * ```
   */
  min(
    ...args: [options?: MinOptions] | [axis: number | readonly number[] | null, options?: MinOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.min", [this, ...args]);
  }

  /**
   * The least element; NaN if there is one. Throws ShapeError.
   *
   * Values alone, as tinygrad's; torch's `min(axis)` is `(x.min(axis), x.argmin(axis))`.
   *
   * ```js
   * await new Tensor([[1, 5], [7, 2]]).min(1).tolist(); // [1, 2]
   * ```
   */
  amin(
    ...args: [options?: AminOptions] | [axis: number | readonly number[] | null, options?: AminOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.amin", [this, ...args]);
  }

  /**
   * The least and the greatest element. Throws ShapeError, AxisError.
   *
   * ```js
   * await Promise.all(new Tensor([3, 1, 2]).aminmax().map((t) => t.item())); // [1, 3]
   * ```
   */
  aminmax(
    ...args: [options?: AminmaxOptions] | [axis: number | readonly number[] | null, options?: AminmaxOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.aminmax", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * Whether any element is not 0 (bool).
   *
   * ```js
   * await new Tensor([[0, 0], [1, 0]]).any(1).tolist(); // [false, true]
   * ```
   */
  any(
    ...args: [options?: AnyOptions] | [axis: number | readonly number[] | null, options?: AnyOptions]
  ): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.any", [this, ...args]);
  }

  /**
   * Whether every element is not 0 (bool).
   *
   * ```js
   * await new Tensor([[1, 1], [1, 0]]).all(1).tolist(); // [true, false]
   * ```
   */
  all(
    ...args: [options?: AllOptions] | [axis: number | readonly number[] | null, options?: AllOptions]
  ): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.all", [this, ...args]);
  }

  /**
   * How many elements are other than 0. Throws AxisError.
   *
   * ```js
   * await new Tensor([[0, 2], [3, 4]]).countNonzero(0).tolist(); // [1, 2]
   * ```
   */
  countNonzero(
    ...args:
      | [options?: CountNonzeroOptions]
      | [axis: number | readonly number[] | null, options?: CountNonzeroOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.count_nonzero", [this, ...args]);
  }

  /**
   * log(sum(exp(this))) along `axis`, without overflow.
   *
   * ```js
   * await new Tensor([0, 0]).logsumexp().item(); // ≈ 0.69314
   * ```
   */
  logsumexp(
    ...args:
      [options?: LogsumexpOptions] | [axis: number | readonly number[] | null, options?: LogsumexpOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.logsumexp", [this, ...args]);
  }

  /**
   * |this - other| <= atol + rtol * |other|; equal infinities are close, NaNs when `equalNan`.
   *
   * ```js
   * await new Tensor([1, 2]).isclose(new Tensor([1, 2.1])).tolist(); // [true, false]
   * ```
   */
  isclose(
    ...args:
      | [other: Operand, options?: IscloseOptions]
      | [other: Operand, rtol: number, options?: IscloseOptions]
      | [other: Operand, rtol: number, atol: number, options?: IscloseOptions]
  ): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isclose", [this, ...args]);
  }

  /**
   * Whether all elements are close (bool, shape ()): see `isclose`.
   *
   * A Tensor, as tinygrad's; torch's is a bool.
   *
   * ```js
   * await new Tensor([1, 2]).allclose(new Tensor([1, 2.0000001])).item(); // true
   * ```
   */
  allclose(
    ...args:
      | [other: Operand, options?: AllcloseOptions]
      | [other: Operand, rtol: number, options?: AllcloseOptions]
      | [other: Operand, rtol: number, atol: number, options?: AllcloseOptions]
  ): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.allclose", [this, ...args]);
  }

  /**
   * (sum |x|^p)^(1/p); the greatest or least |x| for Infinity and -Infinity, how many are not 0 for 0.
   *
   * The gradient of a norm that is 0 is 0. Throws AxisError.
   *
   * ```js
   * await new Tensor([3, 4]).norm().item(); // 5
   * ```
   */
  norm(
    ...args:
      | [options?: NormOptions]
      | [p: number, options?: NormOptions]
      | [p: number, axis: number | readonly number[] | null, options?: NormOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.norm", [this, ...args]);
  }

  /**
   * The mean, in floats.
   *
   * ```js
   * await new Tensor([1, 2, 6]).mean().item(); // 3
   * ```
   */
  mean(
    ...args: [options?: MeanOptions] | [axis: number | readonly number[] | null, options?: MeanOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.mean", [this, ...args]);
  }

  /**
   * The mean of all elements except NaN. Throws AxisError.
   *
   * ```js
   * await new Tensor([1, NaN, 2]).nanmean().item(); // 1.5
   * ```
   */
  nanmean(
    ...args: [options?: NanmeanOptions] | [axis: number | readonly number[] | null, options?: NanmeanOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.nanmean", [this, ...args]);
  }

  /**
   * The variance, divided by count - `correction`.
   *
   * The second argument is `keepdim`, as tinygrad's; torch's is `unbiased`.
   *
   * ```js
   * await new Tensor([1, 3]).var({ correction: 0 }).item(); // 1
   * ```
   */
  var(
    ...args: [options?: VarOptions] | [axis: number | readonly number[] | null, options?: VarOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.var", [this, ...args]);
  }

  /**
   * The variance and the mean.
   *
   * ```js
   * await Promise.all(new Tensor([1, 3]).varMean({ correction: 0 }).map((t) => t.item())); // [1, 2]
   * ```
   */
  varMean(
    ...args: [options?: VarMeanOptions] | [axis: number | readonly number[] | null, options?: VarMeanOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.var_mean", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The standard deviation; its gradient is 0 where it is 0.
   *
   * The second argument is `keepdim`, as tinygrad's; torch's is `unbiased`.
   *
   * ```js
   * await new Tensor([1, 3]).std({ correction: 0 }).item(); // 1
   * ```
   */
  std(
    ...args: [options?: StdOptions] | [axis: number | readonly number[] | null, options?: StdOptions]
  ): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.std", [this, ...args]);
  }

  /**
   * The standard deviation and the mean.
   *
   * ```js
   * await Promise.all(new Tensor([1, 3]).stdMean({ correction: 0 }).map((t) => t.item())); // [1, 2]
   * ```
   */
  stdMean(
    ...args: [options?: StdMeanOptions] | [axis: number | readonly number[] | null, options?: StdMeanOptions]
  ): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.std_mean", [this, ...args], 2) as [Tensor, Tensor];
  }

  /**
   * The position (int32) of the greatest element, the first of equals; of the first NaN, if any.
   *
   * Of the flattened Tensor when null.
   *
   * ```js
   * await new Tensor([1, 5, 3]).argmax().item(); // 1
   * ```
   */
  argmax(
    ...args: [options?: ArgmaxOptions] | [axis: number | null, options?: ArgmaxOptions]
  ): Tensor<"int32"> {
    return callTensor(this[owner], "Tensor.argmax", [this, ...args]);
  }

  /**
   * The position (int32) of the least element, the first of equals; of the first NaN, if any.
   *
   * Of the flattened Tensor when null.
   *
   * ```js
   * await new Tensor([4, 5, 3]).argmin().item(); // 2
   * ```
   */
  argmin(
    ...args: [options?: ArgminOptions] | [axis: number | null, options?: ArgminOptions]
  ): Tensor<"int32"> {
    return callTensor(this[owner], "Tensor.argmin", [this, ...args]);
  }

  /**
   * Elements added around each axis.
   *
   * `padding`: a pair (before, after) or null for every axis, or a flat sequence as torch's: (before,
   * after) of the last axis first. Negative sizes cut. As in torch, the cut comes first if `mode` is
   * 'constant' or 'circular'; else the padding is made from the whole axis. `mode`: 'constant' (`value`),
   * 'reflect', 'replicate' or 'circular'. Throws ArgumentError, ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).pad([1, 2]).tolist(); // [0, 1, 2, 0, 0]
   * await new Tensor([1, 2, 3]).pad([1, 1], { mode: "reflect" }).tolist(); // [2, 1, 2, 3, 2]
   * ```
   */
  pad(
    ...args:
      | [padding: readonly (readonly [Size, Size] | null)[] | readonly number[], options?: PadOptions]
      | [
          padding: readonly (readonly [Size, Size] | null)[] | readonly number[],
          mode: "constant" | "reflect" | "replicate" | "circular",
          options?: PadOptions,
        ]
      | [
          padding: readonly (readonly [Size, Size] | null)[] | readonly number[],
          mode: "constant" | "reflect" | "replicate" | "circular",
          value: Scalar,
          options?: PadOptions,
        ]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.pad", [this, ...args]);
  }

  /**
   * `value` added behind each axis up to `shape`; null keeps an axis. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).padTo(4).tolist(); // [1, 2, 0, 0]
   * ```
   */
  padTo(
    ...args:
      | [shape: readonly Size[], options?: PadToOptions]
      | [...shape: (Size | null)[]]
      | [...shape: (Size | null)[], options: PadToOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.pad_to", [this, ...args]);
  }

  /**
   * This Tensor and `args` one after the other along `dim`; `Tensor.cat((a, b), 1)` does too.
   *
   * Throws ShapeError, DeviceError, ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 2]]).cat(new Tensor([[3, 4]], { dtype: "int32" }), { dim: 1 }).tolist(); // [[1, 2, 3, 4]]
   * ```
   */
  cat(...args: [...others: Tensor[]] | [...others: Tensor[], options: CatOptions]): Tensor {
    return callTensor(this[owner], "Tensor.cat", [this, ...args]);
  }
  /** `cat` of the tensors in an array. */
  static cat(tensors: readonly Tensor[], options: CatOptions = {}): Tensor {
    return callTensor(this.bound, "Tensor.cat", [...tensors, options]);
  }

  /**
   * This Tensor and `args`, of one shape, along a new axis `dim`; `Tensor.stack((a, b), 1)` does too.
   *
   * Throws ShapeError, DeviceError, ArgumentError.
   *
   * ```js
   * await new Tensor([1, 2]).stack(new Tensor([3, 4], { dtype: "int32" })).tolist(); // [[1, 2], [3, 4]]
   * ```
   */
  stack(...args: [...others: Tensor[]] | [...others: Tensor[], options: StackOptions]): Tensor {
    return callTensor(this[owner], "Tensor.stack", [this, ...args]);
  }
  /** `stack` of the tensors in an array. */
  static stack(tensors: readonly Tensor[], options: StackOptions = {}): Tensor {
    return callTensor(this.bound, "Tensor.stack", [...tensors, options]);
  }

  /**
   * Pieces along `dim`: of `sizes` elements each (the last may be smaller), or of the sizes listed.
   *
   * Throws ShapeError.
   *
   * ```js
   * await Promise.all(Tensor.arange(5).split(2).map((t) => t.tolist())); // [[0, 1], [2, 3], [4]]
   * ```
   */
  split(
    ...args:
      | [sizes: Size | readonly Size[], options?: SplitOptions]
      | [sizes: Size | readonly Size[], dim: number, options?: SplitOptions]
  ): Tensor<D>[] {
    return callParts(this[owner], "Tensor.split", [this, ...args]) as Tensor<D>[];
  }

  /**
   * At most `chunks` pieces of equal size (the last may be smaller) along `dim`.
   *
   * Throws ArgumentError.
   *
   * ```js
   * await Promise.all(Tensor.arange(5).chunk(2).map((t) => t.tolist())); // [[0, 1, 2], [3, 4]]
   * ```
   */
  chunk(
    ...args: [chunks: number, options?: ChunkOptions] | [chunks: number, dim: number, options?: ChunkOptions]
  ): Tensor<D>[] {
    return callParts(this[owner], "Tensor.chunk", [this, ...args]) as Tensor<D>[];
  }

  /**
   * The whole repeated `repeats[i]` times along axis i; further counts add axes in front.
   *
   * ```js
   * await new Tensor([1, 2]).repeat(2).tolist(); // [1, 2, 1, 2]
   * ```
   */
  repeat(...args: [repeats: readonly Size[]] | [...repeats: Size[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.repeat", [this, ...args]);
  }

  /**
   * Repeated along each axis; axes that `dims` (numbers, or an array) does not name are the first ones.
   *
   * ```js
   * await new Tensor([1, 2]).tile(2).tolist(); // [1, 2, 1, 2]
   * ```
   */
  tile(...args: [dims: readonly Size[]] | [...dims: Size[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.tile", [this, ...args]);
  }

  /**
   * Each element repeated along `dim`; of the flattened Tensor when null.
   *
   * ```js
   * await new Tensor([1, 2]).repeatInterleave(2).tolist(); // [1, 1, 2, 2]
   * ```
   */
  repeatInterleave(
    ...args:
      | [repeats: number, options?: RepeatInterleaveOptions]
      | [repeats: number, dim: number | null, options?: RepeatInterleaveOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.repeat_interleave", [this, ...args]);
  }

  /**
   * Elements shifted cyclically by `shifts` along `dims`.
   *
   * Of the flattened Tensor when null.
   *
   * ```js
   * await new Tensor([1, 2, 3]).roll(1).tolist(); // [3, 1, 2]
   * ```
   */
  roll(
    ...args:
      | [shifts: Size | readonly Size[], options?: RollOptions]
      | [shifts: Size | readonly Size[], dims: number | readonly number[] | null, options?: RollOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.roll", [this, ...args]);
  }

  /**
   * Coordinate grids of 1-D Tensors; `indexing` 'ij' or 'xy'. Throws ArgumentError.
   *
   * ```js
   * await Promise.all(new Tensor([1, 2]).meshgrid(new Tensor([3, 4], { dtype: "int32" })).map((t) => t.tolist())); // [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
   * ```
   */
  meshgrid(...args: [...others: Tensor[]] | [...others: Tensor[], options: MeshgridOptions]): Tensor[] {
    return callTensors(this[owner], "Tensor.meshgrid", [this, ...args], "arguments + 1");
  }
  /** `meshgrid` of the tensors in an array. */
  static meshgrid(tensors: readonly Tensor[], options: MeshgridOptions = {}): Tensor[] {
    return callTensors(this.bound, "Tensor.meshgrid", [...tensors, options], "arguments + 1");
  }

  /**
   * The elements in row-major order as `shape`; one size may be -1, which is inferred.
   *
   * null keeps the size of the axis at its place; behind the last axis it is inferred, as -1. Throws
   * ShapeError when the sizes do not multiply to the number of elements.
   *
   * The result is always a view: a write through it changes the original. torch copies a Tensor that
   * is not contiguous.
   *
   * ```js
   * await new Tensor([1, 2, 3, 4]).reshape(2, -1).tolist(); // [[1, 2], [3, 4]]
   * ```
   */
  reshape(...args: [shape: readonly Size[]] | [...shape: (Size | null)[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.reshape", [this, ...args]);
  }

  /**
   * `reshape`.
   *
   * ```js
   * await new Tensor([1, 2, 3, 4]).view(2, 2).tolist(); // [[1, 2], [3, 4]]
   * ```
   */
  view(...args: [shape: readonly Size[]] | [...shape: (Size | null)[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.view", [this, ...args]);
  }

  /**
   * Axes of size 1 repeated to `shape`, new ones in front; -1 or null keeps a size.
   *
   * Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1], [2]]).expand(2, 3).tolist(); // [[1, 1, 1], [2, 2, 2]]
   * ```
   */
  expand(...args: [shape: readonly Size[]] | [...shape: Size[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.expand", [this, ...args]);
  }

  /**
   * Axes of size 1 repeated to `shape`, new ones in front; -1 or null keeps a size.
   *
   * Throws ShapeError.
   *
   * ```js
   * await new Tensor([[1], [2]]).expand(2, 3).tolist(); // [[1, 1, 1], [2, 2, 2]]
   * ```
   */
  broadcastTo(...args: [shape: readonly Size[]] | [...shape: Size[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.broadcast_to", [this, ...args]);
  }

  /**
   * Axis i of the result is axis `order[i]`. Throws ArgumentError unless every axis is named once.
   *
   * ```js
   * (await Tensor.zeros(2, 3, 4).permute(2, 0, 1).ready()).shape; // [4, 2, 3]
   * ```
   */
  permute(order: number | readonly number[], ...others: number[]): Tensor<D> {
    return callTensor(this[owner], "Tensor.permute", [this, order, ...others]);
  }

  /**
   * The named axes reversed. Throws AxisError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).flip(0).tolist(); // [[3, 4], [1, 2]]
   * ```
   */
  flip(axis: number | readonly number[], ...others: number[]): Tensor<D> {
    return callTensor(this[owner], "Tensor.flip", [this, axis, ...others]);
  }

  /**
   * Elements lo (included) to hi (not) of each axis; null keeps an axis. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2, 3, 4]).shrink([[1, 3]]).tolist(); // [2, 3]
   * ```
   */
  shrink(arg: readonly (readonly [Size, Size] | null)[]): Tensor<D> {
    return callTensor(this[owner], "Tensor.shrink", [this, arg]);
  }

  /**
   * Two axes swapped.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist(); // [[1, 3], [2, 4]]
   * ```
   */
  transpose(
    ...args:
      | [options?: TransposeOptions]
      | [dim0: number, options?: TransposeOptions]
      | [dim0: number, dim1: number, options?: TransposeOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.transpose", [this, ...args]);
  }

  /**
   * Two axes swapped.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist(); // [[1, 3], [2, 4]]
   * ```
   */
  swapaxes(
    ...args:
      | [options?: SwapaxesOptions]
      | [dim0: number, options?: SwapaxesOptions]
      | [dim0: number, dim1: number, options?: SwapaxesOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.swapaxes", [this, ...args]);
  }

  /**
   * Two axes swapped.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist(); // [[1, 3], [2, 4]]
   * ```
   */
  swapdims(
    ...args:
      | [options?: SwapdimsOptions]
      | [dim0: number, options?: SwapdimsOptions]
      | [dim0: number, dim1: number, options?: SwapdimsOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.swapdims", [this, ...args]);
  }

  /**
   * The transpose of a matrix; fewer axes stay as they are. Throws ShapeError for more than 2.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).t().tolist(); // [[1, 3], [2, 4]]
   * ```
   */
  t(): Tensor<D> {
    return callTensor(this[owner], "Tensor.t", [this]);
  }

  /**
   * Axes `source` at the places `destination`, the others in their order.
   *
   * Throws ArgumentError for axes that are not as many or occur twice, AxisError.
   *
   * ```js
   * (await Tensor.zeros(2, 3, 4).movedim(0, -1).ready()).shape; // [3, 4, 2]
   * ```
   */
  movedim(source: number | readonly number[], destination: number | readonly number[]): Tensor<D> {
    return callTensor(this[owner], "Tensor.movedim", [this, source, destination]);
  }

  /**
   * Axes `source` at the places `destination`, the others in their order.
   *
   * Throws ArgumentError for axes that are not as many or occur twice, AxisError.
   *
   * ```js
   * (await Tensor.zeros(2, 3, 4).movedim(0, -1).ready()).shape; // [3, 4, 2]
   * ```
   */
  moveaxis(source: number | readonly number[], destination: number | readonly number[]): Tensor<D> {
    return callTensor(this[owner], "Tensor.moveaxis", [this, source, destination]);
  }

  /**
   * The first axis in reverse.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).flipud().tolist(); // [[3, 4], [1, 2]]
   * ```
   */
  flipud(): Tensor<D> {
    return callTensor(this[owner], "Tensor.flipud", [this]);
  }

  /**
   * The second axis in reverse. Throws AxisError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).fliplr().tolist(); // [[2, 1], [4, 3]]
   * ```
   */
  fliplr(): Tensor<D> {
    return callTensor(this[owner], "Tensor.fliplr", [this]);
  }

  /**
   * Rotated by k quarter turns, from the first of `dims` towards the second. Throws ArgumentError,
   * AxisError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).rot90().tolist(); // [[2, 4], [1, 3]]
   * ```
   */
  rot90(
    ...args:
      | [options?: Rot90Options]
      | [k: number, options?: Rot90Options]
      | [k: number, dims: readonly number[], options?: Rot90Options]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.rot90", [this, ...args]);
  }

  /**
   * Axes of size 1 dropped; only `dim`, if given.
   *
   * ```js
   * (await Tensor.zeros(1, 2, 1).squeeze().ready()).shape; // [2]
   * ```
   */
  squeeze(...args: [options?: SqueezeOptions] | [dim: number | null, options?: SqueezeOptions]): Tensor<D> {
    return callTensor(this[owner], "Tensor.squeeze", [this, ...args]);
  }

  /**
   * A new axis of size 1 at `dim`.
   *
   * ```js
   * (await new Tensor([1, 2]).unsqueeze(0).ready()).shape; // [1, 2]
   * ```
   */
  unsqueeze(dim: number): Tensor<D> {
    return callTensor(this[owner], "Tensor.unsqueeze", [this, dim]);
  }

  /**
   * Axes `startDim` to `endDim` made one. Throws ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).flatten().tolist(); // [1, 2, 3, 4]
   * ```
   */
  flatten(
    ...args:
      | [options?: FlattenOptions]
      | [startDim: number, options?: FlattenOptions]
      | [startDim: number, endDim: number, options?: FlattenOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.flatten", [this, ...args]);
  }

  /**
   * One axis of all elements.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).ravel().tolist(); // [1, 2, 3, 4]
   * ```
   */
  ravel(): Tensor<D> {
    return callTensor(this[owner], "Tensor.ravel", [this]);
  }

  /**
   * Axis `dim` split into `sizes`, one of which may be -1. Throws ShapeError.
   *
   * ```js
   * (await Tensor.zeros(6).unflatten(0, [2, 3]).ready()).shape; // [2, 3]
   * ```
   */
  unflatten(dim: number, sizes: readonly number[]): Tensor<D> {
    return callTensor(this[owner], "Tensor.unflatten", [this, dim, sizes]);
  }

  /**
   * Expanded to the shape of `other`. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).expandAs(Tensor.zeros(2, 2)).tolist(); // [[1, 2], [1, 2]]
   * ```
   */
  expandAs(other: Tensor): Tensor<D> {
    return callTensor(this[owner], "Tensor.expand_as", [this, other]);
  }

  /**
   * In the shape of `other`. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).reshapeAs(Tensor.zeros(2, 1)).tolist(); // [[1], [2]]
   * ```
   */
  reshapeAs(other: Tensor): Tensor<D> {
    return callTensor(this[owner], "Tensor.reshape_as", [this, other]);
  }

  /**
   * In the shape of `other`. Throws ShapeError.
   *
   * ```js
   * await new Tensor([1, 2]).reshapeAs(Tensor.zeros(2, 1)).tolist(); // [[1], [2]]
   * ```
   */
  viewAs(other: Tensor): Tensor<D> {
    return callTensor(this[owner], "Tensor.view_as", [this, other]);
  }

  /**
   * The first elements of each axis, as many as `shape` says; null keeps an axis.
   *
   * ```js
   * await new Tensor([1, 2, 3]).shrinkTo(2).tolist(); // [1, 2]
   * ```
   */
  shrinkTo(...args: [shape: readonly Size[]] | [...shape: (Size | null)[]]): Tensor<D> {
    return callTensor(this[owner], "Tensor.shrink_to", [this, ...args]);
  }

  /**
   * `length` elements along `dim`, from `start` on: a view. Throws AxisError, ShapeError.
   *
   * ```js
   * await new Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist(); // [2, 3]
   * ```
   */
  narrow(dim: number, start: number, length: number): Tensor<D> {
    return callTensor(this[owner], "Tensor.narrow", [this, dim, start, length]);
  }

  /**
   * The diagonal of axes `dim1` and `dim2`, as the last axis, `offset` above the main one.
   *
   * Throws ArgumentError.
   *
   * ```js
   * await new Tensor([[1, 2], [3, 4]]).diagonal().tolist(); // [1, 4]
   * ```
   */
  diagonal(
    ...args:
      | [options?: DiagonalOptions]
      | [offset: number, options?: DiagonalOptions]
      | [offset: number, dim1: number, options?: DiagonalOptions]
  ): Tensor<D> {
    return callTensor(this[owner], "Tensor.diagonal", [this, ...args]);
  }

  /**
   * Windows of `size` elements, `step` apart, along `dim`; the windows' own axis comes last.
   *
   * Throws ArgumentError.
   *
   * As torch.Tensor's; torch.nn.functional's takes blocks of images, which are `pool` here.
   *
   * ```js
   * await new Tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist(); // [[1, 2], [2, 3], [3, 4]]
   * ```
   */
  unfold(dim: number, size: number, step: number): Tensor<D> {
    return callTensor(this[owner], "Tensor.unfold", [this, dim, size, step]);
  }

  /**
   * Windows over the last len(k) axes: (..., *outputs, *k).
   *
   * It is made of movement ops alone: each axis is repeated and sheared, so that every repetition starts
   * `dilation` elements later. Throws ArgumentError when a window is larger than its axis, and for strides
   * and dilations under 1.
   *
   * ```js
   * await new Tensor([1, 2, 3]).pool([2]).tolist(); // [[1, 2], [2, 3]]
   * ```
   */
  pool(
    ...args:
      | [k: readonly Size[], options?: PoolOptions]
      | [k: readonly Size[], stride: number | readonly number[], options?: PoolOptions]
      | [
          k: readonly Size[],
          stride: number | readonly number[],
          dilation: number | readonly number[],
          options?: PoolOptions,
        ]
  ): Tensor {
    return callTensor(this[owner], "Tensor.pool", [this, ...args]);
  }

  /**
   * The error function, within 3 ulp in float32; in float64 within 1e-15.
   *
   * In float32: x p(x²) where |x| < 0.85, else 1 - 2^(-|x| q(|x|)): polynomials fitted to the least
   * relative error, no division. From 4 up it is 1. In float64: Cody's rational functions, see `erfc`.
   *
   * ```js
   * await new Tensor([0.5]).erf().tolist(); // ≈ [0.52049]
   * ```
   */
  erf(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.erf", [this]);
  }

  /**
   * 1 - erf(this), without cancellation: within 1e-5 of its value (1e-14 in float64) where it is tiny.
   *
   * Rational functions of W. J. Cody, "Rational Chebyshev approximations for the error function" (1969).
   *
   * ```js
   * await new Tensor([0.5]).erfc().tolist(); // ≈ [0.4795]
   * ```
   */
  erfc(): Tensor {
    return callTensor(this[owner], "Tensor.erfc", [this]);
  }

  /**
   * The inverse of erf; infinite at -1 and 1, NaN beyond.
   *
   * Giles, "Approximating the erfinv function" (2010), and a step of Newton's method (two in float64).
   *
   * ```js
   * await new Tensor([0.5]).erfinv().tolist(); // ≈ [0.47693]
   * ```
   */
  erfinv(): Tensor {
    return callTensor(this[owner], "Tensor.erfinv", [this]);
  }

  /**
   * log |gamma(this)|; infinite at 0 and the negative integers.
   *
   * Stirling's series of a number of at least 8, which recurrence leads to; the reflection formula below
   * 1/2. In float32 within 8 ulp, or 1e-5 near zeros at negative numbers; in float64 within 2e-14 of the
   * value or 1. The gradient is `digamma`.
   *
   * ```js
   * await new Tensor([4]).lgamma().tolist(); // ≈ [1.79175]
   * ```
   */
  lgamma(): Tensor {
    return callTensor(this[owner], "Tensor.lgamma", [this]);
  }

  /**
   * The derivative of lgamma; NaN at the negative integers, -Infinity at 0 and Infinity at -0, as torch's.
   *
   * ```js
   * await new Tensor([1, 2]).digamma().tolist(); // ≈ [-0.57721, 0.42278]
   * ```
   */
  digamma(): Tensor {
    return callTensor(this[owner], "Tensor.digamma", [this]);
  }

  /**
   * The logarithm of the multivariate gamma function of dimension p: defined above (p - 1) / 2.
   *
   * Throws ArgumentError for p less than 1.
   *
   * ```js
   * await new Tensor([2]).mvlgamma(2).tolist(); // ≈ [0.4515]
   * ```
   */
  mvlgamma(p: number): Tensor {
    return callTensor(this[owner], "Tensor.mvlgamma", [this, p]);
  }

  /**
   * The n-th derivative of digamma; Infinity or NaN at the integers up to 0. Throws ArgumentError for n < 0.
   *
   * ```js
   * await new Tensor([1]).polygamma(1).tolist(); // ≈ [1.64493]
   * ```
   */
  polygamma(n: number): Tensor {
    return callTensor(this[owner], "Tensor.polygamma", [this, n]);
  }

  /**
   * The modified Bessel function of the first kind, of order 0.
   *
   * ```js
   * await new Tensor([0, 1]).i0().tolist(); // ≈ [1, 1.26606]
   * ```
   */
  i0(): Tensor {
    return callTensor(this[owner], "Tensor.i0", [this]);
  }

  /**
   * The sine of radians.
   *
   * ```js
   * await new Tensor([0, 1]).sin().tolist(); // ≈ [0, 0.84147]
   * ```
   */
  sin(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.sin", [this]);
  }

  /**
   * The cosine of radians, as 1 - 2 sin²(x/2): in float32 within 2.5e-7, for every x.
   *
   * The bound is absolute: near pi/2 and the other zeros fewer digits are correct.
   *
   * ```js
   * await new Tensor([0, 1]).cos().tolist(); // ≈ [1, 0.5403]
   * ```
   */
  cos(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.cos", [this]);
  }

  /**
   * The tangent of radians, as sin / cos: near its poles it has as few right digits as `cos`.
   *
   * ```js
   * await new Tensor([1]).tan().tolist(); // ≈ [1.5574]
   * ```
   */
  tan(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.tan", [this]);
  }

  /**
   * The arc sine; NaN outside -1 to 1. Within 3 ulp.
   *
   * ```js
   * await new Tensor([0.5]).asin().tolist(); // ≈ [0.52359]
   * ```
   */
  asin(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.asin", [this]);
  }

  /**
   * The arc sine; NaN outside -1 to 1. Within 3 ulp.
   *
   * ```js
   * await new Tensor([0.5]).asin().tolist(); // ≈ [0.52359]
   * ```
   */
  arcsin(): Tensor {
    return callTensor(this[owner], "Tensor.arcsin", [this]);
  }

  /**
   * The arc cosine; NaN outside -1 to 1. Within 3 ulp.
   *
   * ```js
   * await new Tensor([1, 0]).acos().tolist(); // ≈ [0, 1.57079]
   * ```
   */
  acos(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.acos", [this]);
  }

  /**
   * The arc cosine; NaN outside -1 to 1. Within 3 ulp.
   *
   * ```js
   * await new Tensor([1, 0]).acos().tolist(); // ≈ [0, 1.57079]
   * ```
   */
  arccos(): Tensor {
    return callTensor(this[owner], "Tensor.arccos", [this]);
  }

  /**
   * The arc tangent, within 3 ulp.
   *
   * ```js
   * await new Tensor([2]).atan().tolist(); // ≈ [1.10714]
   * ```
   */
  atan(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.atan", [this]);
  }

  /**
   * The arc tangent, within 3 ulp.
   *
   * ```js
   * await new Tensor([2]).atan().tolist(); // ≈ [1.10714]
   * ```
   */
  arctan(): Tensor {
    return callTensor(this[owner], "Tensor.arctan", [this]);
  }

  /**
   * The angle of the point (other, this), -pi to pi, as C's atan2.
   *
   * ```js
   * await new Tensor([1, -1]).atan2(new Tensor([-2, -2])).tolist(); // ≈ [2.67794, -2.67794]
   * ```
   */
  atan2(other: Operand): Tensor {
    return callTensor(this[owner], "Tensor.atan2", [this, other]);
  }

  /**
   * The angle of the point (other, this), -pi to pi, as C's atan2.
   *
   * ```js
   * await new Tensor([1, -1]).atan2(new Tensor([-2, -2])).tolist(); // ≈ [2.67794, -2.67794]
   * ```
   */
  arctan2(other: Operand): Tensor {
    return callTensor(this[owner], "Tensor.arctan2", [this, other]);
  }

  /**
   * sin(pi x) / (pi x), and 1 at 0.
   *
   * ```js
   * await new Tensor([0, 0.5]).sinc().tolist(); // ≈ [1, 0.6366]
   * ```
   */
  sinc(): Tensor {
    return callTensor(this[owner], "Tensor.sinc", [this]);
  }

  /**
   * Degrees as radians.
   *
   * ```js
   * await new Tensor([180]).deg2rad().tolist(); // ≈ [3.14159]
   * ```
   */
  deg2rad(): Tensor {
    return callTensor(this[owner], "Tensor.deg2rad", [this]);
  }

  /**
   * Radians as degrees.
   *
   * ```js
   * await new Tensor([0.5]).rad2deg().tolist(); // ≈ [28.647]
   * ```
   */
  rad2deg(): Tensor {
    return callTensor(this[owner], "Tensor.rad2deg", [this]);
  }

  /**
   * The hyperbolic sine, within 5 ulp.
   *
   * ```js
   * await new Tensor([1]).sinh().tolist(); // ≈ [1.1752]
   * ```
   */
  sinh(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.sinh", [this]);
  }

  /**
   * The hyperbolic cosine, within 5 ulp.
   *
   * ```js
   * await new Tensor([1]).cosh().tolist(); // ≈ [1.54308]
   * ```
   */
  cosh(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.cosh", [this]);
  }

  /**
   * The inverse hyperbolic sine, within 4 ulp.
   *
   * ```js
   * await new Tensor([2]).asinh().tolist(); // ≈ [1.44363]
   * ```
   */
  asinh(): Tensor {
    return callTensor(this[owner], "Tensor.asinh", [this]);
  }

  /**
   * The inverse hyperbolic sine, within 4 ulp.
   *
   * ```js
   * await new Tensor([2]).asinh().tolist(); // ≈ [1.44363]
   * ```
   */
  arcsinh(): Tensor {
    return callTensor(this[owner], "Tensor.arcsinh", [this]);
  }

  /**
   * The inverse hyperbolic cosine; NaN below 1. Within 4 ulp.
   *
   * ```js
   * await new Tensor([2]).acosh().tolist(); // ≈ [1.31695]
   * ```
   */
  acosh(): Tensor {
    return callTensor(this[owner], "Tensor.acosh", [this]);
  }

  /**
   * The inverse hyperbolic cosine; NaN below 1. Within 4 ulp.
   *
   * ```js
   * await new Tensor([2]).acosh().tolist(); // ≈ [1.31695]
   * ```
   */
  arccosh(): Tensor {
    return callTensor(this[owner], "Tensor.arccosh", [this]);
  }

  /**
   * The inverse hyperbolic tangent; NaN outside -1 to 1. Within 4 ulp.
   *
   * ```js
   * await new Tensor([0.5]).atanh().tolist(); // ≈ [0.5493]
   * ```
   */
  atanh(): Tensor {
    return callTensor(this[owner], "Tensor.atanh", [this]);
  }

  /**
   * The inverse hyperbolic tangent; NaN outside -1 to 1. Within 4 ulp.
   *
   * ```js
   * await new Tensor([0.5]).atanh().tolist(); // ≈ [0.5493]
   * ```
   */
  arctanh(): Tensor {
    return callTensor(this[owner], "Tensor.arctanh", [this]);
  }

  /**
   * this * this.
   *
   * ```js
   * await new Tensor([3, -4]).square().tolist(); // [9, 16]
   * ```
   */
  square(): Tensor {
    return callTensor(this[owner], "Tensor.square", [this]);
  }

  /**
   * The square root; NaN below 0.
   *
   * ```js
   * await new Tensor([4, 9]).sqrt().tolist(); // [2, 3]
   * ```
   */
  sqrt(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.sqrt", [this]);
  }

  /**
   * 1 / sqrt(this).
   *
   * ```js
   * await new Tensor([4]).rsqrt().tolist(); // [0.5]
   * ```
   */
  rsqrt(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.rsqrt", [this]);
  }

  /**
   * sqrt(this² + x²), without overflow on the way.
   *
   * ```js
   * await new Tensor([3]).hypot(new Tensor([4])).tolist(); // [5]
   * ```
   */
  hypot(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.hypot", [this, x]);
  }

  /**
   * this to the power of x: value and gradients at 0, infinity and NaN are torch's.
   *
   * x**0 is 1 for every x; a negative base needs a whole exponent, else NaN (-Infinity and -0.0 do not). A
   * constant whole or half exponent becomes multiplications (and a square root); the rest is within 2 ulp
   * in float32 and float64. Integers go through float64: exact up to 2**53. Throws ArgumentError for an
   * integer base with a negative constant integer exponent.
   *
   * ```js
   * await new Tensor([2, 3]).pow(2).tolist(); // [4, 9]
   * ```
   */
  pow<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.pow", [this, x]);
  }

  /**
   * 2 to the power of this.
   *
   * ```js
   * await new Tensor([0, 3]).exp2().tolist(); // [1, 8]
   * ```
   */
  exp2(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.exp2", [this]);
  }

  /**
   * e to the power of this, as 2 to the power of this / ln 2; within 1 ulp in optimised kernels.
   *
   * ```js
   * await new Tensor([0, 1]).exp().tolist(); // ≈ [1, 2.71828]
   * ```
   */
  exp(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.exp", [this]);
  }

  /**
   * The logarithm to base 2; -Infinity of 0, NaN below.
   *
   * ```js
   * await new Tensor([8]).log2().tolist(); // [3]
   * ```
   */
  log2(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.log2", [this]);
  }

  /**
   * The natural logarithm; -Infinity of 0, NaN below.
   *
   * ```js
   * await new Tensor([1, 2]).log().tolist(); // ≈ [0, 0.69314]
   * ```
   */
  log(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.log", [this]);
  }

  /**
   * The logarithm to base 10; -Infinity of 0, NaN below.
   *
   * ```js
   * await new Tensor([100]).log10().tolist(); // [2]
   * ```
   */
  log10(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.log10", [this]);
  }

  /**
   * exp(this) - 1, exact to a few ulp near 0 too.
   *
   * ```js
   * await new Tensor([0, 1]).expm1().tolist(); // ≈ [0, 1.71828]
   * ```
   */
  expm1(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.expm1", [this]);
  }

  /**
   * log(1 + this), exact to a few ulp near 0 too; NaN below -1.
   *
   * ```js
   * await new Tensor([0, 1]).log1p().tolist(); // ≈ [0, 0.69314]
   * ```
   */
  log1p(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.log1p", [this]);
  }

  /**
   * this * log(other), and 0 where this is 0 and `other` no NaN.
   *
   * ```js
   * await new Tensor([0, 2]).xlogy(new Tensor([0, 1])).tolist(); // [0, 0]
   * ```
   */
  xlogy(other: Operand): Tensor {
    return callTensor(this[owner], "Tensor.xlogy", [this, other]);
  }

  /**
   * log(this / (1 - this)), the inverse of sigmoid; this is first clipped to eps..1 - eps, if given.
   *
   * ```js
   * await new Tensor([0.5, 0.75]).logit().tolist(); // ≈ [0, 1.09861]
   * ```
   */
  logit(...args: [options?: LogitOptions] | [eps: number | null, options?: LogitOptions]): Tensor {
    return callTensor(this[owner], "Tensor.logit", [this, ...args]);
  }

  /**
   * log(exp(this) + exp(other)), without overflow.
   *
   * ```js
   * await new Tensor([1]).logaddexp(new Tensor([2])).tolist(); // ≈ [2.31326]
   * ```
   */
  logaddexp(other: Operand): Tensor {
    return callTensor(this[owner], "Tensor.logaddexp", [this, other]);
  }

  /**
   * log2(2**this + 2**x), without overflow.
   *
   * ```js
   * await new Tensor([3]).logaddexp2(new Tensor([3])).tolist(); // [4]
   * ```
   */
  logaddexp2(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.logaddexp2", [this, x]);
  }

  /**
   * Rounded towards 0; integers as they are.
   *
   * ```js
   * await new Tensor([1.7, -1.7]).trunc().tolist(); // [1, -1]
   * ```
   */
  trunc(): Tensor {
    return callTensor(this[owner], "Tensor.trunc", [this]);
  }

  /**
   * Rounded towards 0; integers as they are.
   *
   * ```js
   * await new Tensor([1.7, -1.7]).trunc().tolist(); // [1, -1]
   * ```
   */
  fix(): Tensor {
    return callTensor(this[owner], "Tensor.fix", [this]);
  }

  /**
   * Rounded towards minus infinity; integers as they are.
   *
   * ```js
   * await new Tensor([1.7, -1.2]).floor().tolist(); // [1, -2]
   * ```
   */
  floor(): Tensor {
    return callTensor(this[owner], "Tensor.floor", [this]);
  }

  /**
   * Rounded towards infinity; integers as they are.
   *
   * ```js
   * await new Tensor([1.2, -1.2]).ceil().tolist(); // [2, -1]
   * ```
   */
  ceil(): Tensor {
    return callTensor(this[owner], "Tensor.ceil", [this]);
  }

  /**
   * Rounded to the nearest integer, halves to the even one; integers as they are.
   *
   * ```js
   * await new Tensor([0.5, 1.5, 2.6]).round().tolist(); // [0, 2, 3]
   * ```
   */
  round(): Tensor {
    return callTensor(this[owner], "Tensor.round", [this]);
  }

  /**
   * The fractional part, with the sign of this.
   *
   * ```js
   * await new Tensor([2.5, -2.25]).frac().tolist(); // [0.5, -0.25]
   * ```
   */
  frac(): Tensor {
    return callTensor(this[owner], "Tensor.frac", [this]);
  }

  /**
   * -1, 0 or 1; NaN of NaN.
   *
   * torch's is 0 of NaN.
   *
   * ```js
   * await new Tensor([-2, 0, 3]).sign().tolist(); // [-1, 0, 1]
   * ```
   */
  sign(): Tensor {
    return callTensor(this[owner], "Tensor.sign", [this]);
  }

  /**
   * Whether the sign is negative, that of -0.0 too.
   *
   * ```js
   * await new Tensor([-0, 0, -2]).signbit().tolist(); // [true, false, true]
   * ```
   */
  signbit(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.signbit", [this]);
  }

  /**
   * The magnitude of this with the sign of `other` (of -0.0 too).
   *
   * ```js
   * await new Tensor([1, -2]).copysign(new Tensor([-0, 3])).tolist(); // [-1, 2]
   * ```
   */
  copysign(other: Operand): Tensor {
    return callTensor(this[owner], "Tensor.copysign", [this, other]);
  }

  /**
   * The magnitude; its gradient at 0 is 0.
   *
   * ```js
   * await new Tensor([-1.5, 2]).abs().tolist(); // [1.5, 2]
   * ```
   */
  abs(): Tensor<D> {
    return callTensor(this[owner], "Tensor.abs", [this]);
  }

  /**
   * The magnitude; its gradient at 0 is 0.
   *
   * ```js
   * await new Tensor([-1.5, 2]).abs().tolist(); // [1.5, 2]
   * ```
   */
  absolute(): Tensor<D> {
    return callTensor(this[owner], "Tensor.absolute", [this]);
  }

  /**
   * The mantissa, of a magnitude in [1/2, 1), and the exponent (int32): this = mantissa * 2**exponent.
   *
   * 0, infinities and NaN are their own mantissas, with exponent 0.
   *
   * ```js
   * await Promise.all(new Tensor([8, -0.375]).frexp().map((t) => t.tolist())); // [[0.5, -0.75], [4, -1]]
   * ```
   */
  frexp(): [Tensor, Tensor] {
    return callTensors(this[owner], "Tensor.frexp", [this], 2) as [Tensor, Tensor];
  }

  /**
   * The next float of the dtype from this towards `other`; `other` where both are equal. No gradient.
   *
   * ```js
   * await new Tensor([1]).nextafter(new Tensor([2])).tolist(); // ≈ [1.0000001]
   * ```
   */
  nextafter(other: Operand): Tensor {
    return callTensor(this[owner], "Tensor.nextafter", [this, other]);
  }

  /**
   * `x` where this (bool) Tensor holds, else `y`; all three broadcast. x and y: Tensors or scalars.
   *
   * As tinygrad's: `condition.where(x, y)`. torch's `x.where(condition, y)` has the condition second.
   *
   * ```js
   * await new Tensor([true, false]).where(1, 0).tolist(); // [1, 0]
   * ```
   */
  where(x: Operand, y: Operand): Tensor {
    return callTensor(this[owner], "Tensor.where", [this, x, y]);
  }

  /**
   * `value` where `mask` holds, this elsewhere.
   *
   * A float in integers makes floats; torch rounds it to an integer.
   *
   * ```js
   * await new Tensor([1, 2]).maskedFill(new Tensor([true, false]), 0).tolist(); // [0, 2]
   * ```
   */
  maskedFill(mask: Tensor, value: Operand): Tensor {
    return callTensor(this[owner], "Tensor.masked_fill", [this, mask, value]);
  }

  /**
   * The greater of this and x; NaN where either is.
   *
   * ```js
   * await new Tensor([1, 5]).maximum(3).tolist(); // [3, 5]
   * ```
   */
  maximum<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.maximum", [this, x]);
  }

  /**
   * The lesser of this and x; NaN where either is.
   *
   * ```js
   * await new Tensor([1, 5]).minimum(3).tolist(); // [1, 3]
   * ```
   */
  minimum<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.minimum", [this, x]);
  }

  /**
   * The greater of both; of a NaN and a number, the number. Of equal values, this gets the gradient.
   *
   * ```js
   * await new Tensor([1, NaN]).fmax(new Tensor([2, 3])).tolist(); // [2, 3]
   * ```
   */
  fmax(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.fmax", [this, x]);
  }

  /**
   * The lesser of both; of a NaN and a number, the number. Of equal values, this gets the gradient.
   *
   * ```js
   * await new Tensor([1, NaN]).fmin(new Tensor([2, 3])).tolist(); // [1, 3]
   * ```
   */
  fmin(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.fmin", [this, x]);
  }

  /**
   * this, at least `min` and at most `max`. The gradient flows where this is within.
   *
   * Throws ArgumentError.
   *
   * ```js
   * await new Tensor([-2, 0, 7]).clamp(-1, 5).tolist(); // [-1, 0, 5]
   * ```
   */
  clamp(
    ...args:
      | [options?: ClampOptions]
      | [min: Operand | null, options?: ClampOptions]
      | [min: Operand | null, max: Operand | null, options?: ClampOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.clamp", [this, ...args]);
  }

  /**
   * this, at least `min` and at most `max`. The gradient flows where this is within.
   *
   * Throws ArgumentError.
   *
   * ```js
   * await new Tensor([-2, 0, 7]).clamp(-1, 5).tolist(); // [-1, 0, 5]
   * ```
   */
  clip(
    ...args:
      | [options?: ClipOptions]
      | [min: Operand | null, options?: ClipOptions]
      | [min: Operand | null, max: Operand | null, options?: ClipOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.clip", [this, ...args]);
  }

  /**
   * Not less than `min`.
   *
   * ```js
   * await new Tensor([-1, 2]).clampMin(0).tolist(); // [0, 2]
   * ```
   */
  clampMin(min: Operand): Tensor {
    return callTensor(this[owner], "Tensor.clamp_min", [this, min]);
  }

  /**
   * Not more than `max`.
   *
   * ```js
   * await new Tensor([-1, 2]).clampMax(0).tolist(); // [-1, 0]
   * ```
   */
  clampMax(max: Operand): Tensor {
    return callTensor(this[owner], "Tensor.clamp_max", [this, max]);
  }

  /**
   * NaN replaced by `nan`, infinities by `posinf` and `neginf`; integers as they are.
   *
   * By default the dtype's greatest and least numbers stand for infinities.
   *
   * ```js
   * await new Tensor([1, NaN]).nanToNum().tolist(); // [1, 0]
   * ```
   */
  nanToNum(
    ...args:
      | [options?: NanToNumOptions]
      | [nan: number, options?: NanToNumOptions]
      | [nan: number, posinf: number | null, options?: NanToNumOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.nan_to_num", [this, ...args]);
  }

  /**
   * 0 below 0 and of NaN, 1 above 0, and `values` at 0.
   *
   * ```js
   * await new Tensor([-1, 0, 2]).heaviside(0.5).tolist(); // [0, 0.5, 1]
   * ```
   */
  heaviside(values: Operand): Tensor {
    return callTensor(this[owner], "Tensor.heaviside", [this, values]);
  }

  /**
   * Whether each element is NaN.
   *
   * ```js
   * await new Tensor([1, NaN]).isnan().tolist(); // [false, true]
   * ```
   */
  isnan(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isnan", [this]);
  }

  /**
   * Whether each element is +Infinity (`detectPositive`) or -Infinity (`detectNegative`).
   *
   * ```js
   * await new Tensor([1, -Infinity]).isinf().tolist(); // [false, true]
   * ```
   */
  isinf(options?: IsinfOptions): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isinf", [this, options]);
  }

  /**
   * Whether each element is positive infinity.
   *
   * ```js
   * await new Tensor([Infinity, -Infinity, 1]).isposinf().tolist(); // [true, false, false]
   * ```
   */
  isposinf(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isposinf", [this]);
  }

  /**
   * Whether each element is negative infinity.
   *
   * ```js
   * await new Tensor([Infinity, -Infinity, 1]).isneginf().tolist(); // [false, true, false]
   * ```
   */
  isneginf(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isneginf", [this]);
  }

  /**
   * Whether each element is neither infinite nor NaN.
   *
   * ```js
   * await new Tensor([1, Infinity]).isfinite().tolist(); // [true, false]
   * ```
   */
  isfinite(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.isfinite", [this]);
  }

  /**
   * this + x.
   *
   * ```js
   * await new Tensor([1, 2]).add(3).tolist(); // [4, 5]
   * ```
   */
  add<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.add", [this, x]);
  }

  /**
   * this - x. Throws DTypeError for two bools.
   *
   * ```js
   * await new Tensor([5, 6]).sub(2).tolist(); // [3, 4]
   * ```
   */
  sub<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.sub", [this, x]);
  }

  /**
   * this - x. Throws DTypeError for two bools.
   *
   * ```js
   * await new Tensor([5, 6]).sub(2).tolist(); // [3, 4]
   * ```
   */
  subtract<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.subtract", [this, x]);
  }

  /**
   * this * x.
   *
   * ```js
   * await new Tensor([1, 2]).mul(3).tolist(); // [3, 6]
   * ```
   */
  mul<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.mul", [this, x]);
  }

  /**
   * this * x.
   *
   * ```js
   * await new Tensor([1, 2]).mul(3).tolist(); // [3, 6]
   * ```
   */
  multiply<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.multiply", [this, x]);
  }

  /**
   * this + x for each of `xs`, Tensors or numbers, or one sequence of them; `|` of bools.
   *
   * ```js
   * await new Tensor([1, 2]).usum(3, new Tensor([4, 5], { dtype: "int32" })).tolist(); // [8, 10]
   * ```
   */
  usum(...xs: Operand[]): Tensor {
    return callTensor(this[owner], "Tensor.usum", [this, ...xs]);
  }

  /**
   * this * x for each of `xs`, Tensors or numbers, or one sequence of them; `&` of bools.
   *
   * ```js
   * await new Tensor([1, 2]).uprod(3, new Tensor([4, 5], { dtype: "int32" })).tolist(); // [12, 30]
   * ```
   */
  uprod(...xs: Operand[]): Tensor {
    return callTensor(this[owner], "Tensor.uprod", [this, ...xs]);
  }

  /**
   * -this; of bools, logicalNot.
   *
   * ```js
   * await new Tensor([1, -2]).neg().tolist(); // [-1, 2]
   * ```
   */
  neg(): Tensor<D> {
    return callTensor(this[owner], "Tensor.neg", [this]);
  }

  /**
   * -this; of bools, logicalNot.
   *
   * ```js
   * await new Tensor([1, -2]).neg().tolist(); // [-1, 2]
   * ```
   */
  negative(): Tensor<D> {
    return callTensor(this[owner], "Tensor.negative", [this]);
  }

  /**
   * 1 / this.
   *
   * ```js
   * await new Tensor([2, 4]).reciprocal().tolist(); // [0.5, 0.25]
   * ```
   */
  reciprocal(): Tensor<FloatOf[D]> {
    return callTensor(this[owner], "Tensor.reciprocal", [this]);
  }

  /**
   * this / x in floats.
   *
   * With `roundingMode` 'floor' or 'trunc' the rounded quotient, in the operands' dtype.
   *
   * ```js
   * await new Tensor([7, 8]).div(2).tolist(); // [3.5, 4]
   * await new Tensor([7, -7]).div(2, { roundingMode: "floor" }).tolist(); // [3, -4]
   * ```
   */
  div<X extends Operand>(
    ...args:
      [x: X, options?: DivOptions] | [x: X, roundingMode: "trunc" | "floor" | null, options?: DivOptions]
  ): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.div", [this, ...args]);
  }

  /**
   * this / x in floats.
   *
   * With `roundingMode` 'floor' or 'trunc' the rounded quotient, in the operands' dtype.
   *
   * ```js
   * await new Tensor([7, 8]).div(2).tolist(); // [3.5, 4]
   * await new Tensor([7, -7]).div(2, { roundingMode: "floor" }).tolist(); // [3, -4]
   * ```
   */
  divide<X extends Operand>(
    ...args:
      | [x: X, options?: DivideOptions]
      | [x: X, roundingMode: "trunc" | "floor" | null, options?: DivideOptions]
  ): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.divide", [this, ...args]);
  }

  /**
   * this / x in floats.
   *
   * With `roundingMode` 'floor' or 'trunc' the rounded quotient, in the operands' dtype.
   *
   * ```js
   * await new Tensor([7, 8]).div(2).tolist(); // [3.5, 4]
   * await new Tensor([7, -7]).div(2, { roundingMode: "floor" }).tolist(); // [3, -4]
   * ```
   */
  trueDivide<X extends Operand>(
    ...args:
      | [x: X, options?: TrueDivideOptions]
      | [x: X, roundingMode: "trunc" | "floor" | null, options?: TrueDivideOptions]
  ): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.true_divide", [this, ...args]);
  }

  /**
   * The quotient, rounded down.
   *
   * ```js
   * await new Tensor([7, -7]).floorDivide(2).tolist(); // [3, -4]
   * ```
   */
  floorDivide(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.floor_divide", [this, x]);
  }

  /**
   * The remainder with the sign of the divisor, as Python's %; of integers by 0, 0.
   *
   * ```js
   * await new Tensor([7, -7]).mod(3).tolist(); // [1, 2]
   * ```
   */
  mod<X extends Operand>(x: X): Tensor<Operated<D, X>> {
    return callTensor(this[owner], "Tensor.mod", [this, x]);
  }

  /**
   * The remainder with the sign of the divisor, as Python's %; of integers by 0, 0.
   *
   * ```js
   * await new Tensor([7, -7]).mod(3).tolist(); // [1, 2]
   * ```
   */
  remainder(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.remainder", [this, x]);
  }

  /**
   * The remainder with the sign of the dividend, as C's fmod.
   *
   * ```js
   * await new Tensor([7, -7]).fmod(3).tolist(); // [1, -1]
   * ```
   */
  fmod(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.fmod", [this, x]);
  }

  /**
   * The greatest common divisor of integers, at least 0; gcd(0, 0) is 0. Throws DTypeError.
   *
   * By Euclid's algorithm, of as many steps as the dtype can need.
   *
   * ```js
   * await new Tensor([12, -7, 0], { dtype: "int32" }).gcd(new Tensor([18, 14, 5], { dtype: "int32" })).tolist(); // [6, 7, 5]
   * ```
   */
  gcd(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.gcd", [this, x]);
  }

  /**
   * The least common multiple of integers, at least 0; 0 if one is 0. Throws DTypeError.
   *
   * ```js
   * await new Tensor([4, -6, 0], { dtype: "int32" }).lcm(new Tensor([6, 8, 5], { dtype: "int32" })).tolist(); // [12, 24, 0]
   * ```
   */
  lcm(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.lcm", [this, x]);
  }

  /**
   * this + (end - this) * weight.
   *
   * ```js
   * await new Tensor([0, 10]).lerp(new Tensor([1, 20]), 0.5).tolist(); // [0.5, 15]
   * ```
   */
  lerp(end: Operand, weight: Operand): Tensor {
    return callTensor(this[owner], "Tensor.lerp", [this, end, weight]);
  }

  /**
   * this + value * tensor1 * tensor2.
   *
   * ```js
   * await new Tensor([1]).addcmul(new Tensor([2]), new Tensor([3]), { value: 0.5 }).tolist(); // [4]
   * ```
   */
  addcmul(
    ...args:
      | [tensor1: Tensor, tensor2: Tensor, options?: AddcmulOptions]
      | [tensor1: Tensor, tensor2: Tensor, value: number, options?: AddcmulOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.addcmul", [this, ...args]);
  }

  /**
   * this + value * tensor1 / tensor2.
   *
   * ```js
   * await new Tensor([1]).addcdiv(new Tensor([6]), new Tensor([3]), { value: 0.5 }).tolist(); // [2]
   * ```
   */
  addcdiv(
    ...args:
      | [tensor1: Tensor, tensor2: Tensor, options?: AddcdivOptions]
      | [tensor1: Tensor, tensor2: Tensor, value: number, options?: AddcdivOptions]
  ): Tensor {
    return callTensor(this[owner], "Tensor.addcdiv", [this, ...args]);
  }

  /**
   * this & x of integers or bools.
   *
   * ```js
   * await new Tensor([6, 5], { dtype: "int32" }).bitwiseAnd(3).tolist(); // [2, 1]
   * ```
   */
  bitwiseAnd(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.bitwise_and", [this, x]);
  }

  /**
   * this | x of integers or bools.
   *
   * ```js
   * await new Tensor([6, 5], { dtype: "int32" }).bitwiseOr(3).tolist(); // [7, 7]
   * ```
   */
  bitwiseOr(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.bitwise_or", [this, x]);
  }

  /**
   * this ^ x of integers or bools.
   *
   * ```js
   * await new Tensor([6, 5], { dtype: "int32" }).bitwiseXor(3).tolist(); // [5, 6]
   * ```
   */
  bitwiseXor(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.bitwise_xor", [this, x]);
  }

  /**
   * ~this of integers; of bools, logicalNot.
   *
   * ```js
   * await new Tensor([0, 5], { dtype: "int32" }).bitwiseNot().tolist(); // [-1, -6]
   * ```
   */
  bitwiseNot(): Tensor {
    return callTensor(this[owner], "Tensor.bitwise_not", [this]);
  }

  /**
   * this << x of integers. 0 where x is negative, or no less than the number of bits, as in torch.
   *
   * ```js
   * [await new Tensor([1, 2], { dtype: "int32" }).lshift(3).tolist(), await new Tensor([1, 2], { dtype: "int32" }).lshift(new Tensor([31, 32], { dtype: "int32" })).tolist()]; // [[8, 16], [-2147483648, 0]]
   * ```
   */
  lshift(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.lshift", [this, x]);
  }

  /**
   * this >> x of integers; arithmetic for signed ones. Where x is negative, or no less than the number
   * of bits, only the sign is left, as in torch: 0 or -1.
   *
   * ```js
   * [await new Tensor([8, -8], { dtype: "int32" }).rshift(1).tolist(), await new Tensor([8, -8], { dtype: "int32" }).rshift(40).tolist()]; // [[4, -4], [0, -1]]
   * ```
   */
  rshift(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.rshift", [this, x]);
  }

  /**
   * this < x.
   *
   * ```js
   * await new Tensor([1, 2]).lt(2).tolist(); // [true, false]
   * ```
   */
  lt(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.lt", [this, x]);
  }

  /**
   * this < x.
   *
   * ```js
   * await new Tensor([1, 2]).lt(2).tolist(); // [true, false]
   * ```
   */
  less(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.less", [this, x]);
  }

  /**
   * this > x.
   *
   * ```js
   * await new Tensor([1, 2]).gt(1).tolist(); // [false, true]
   * ```
   */
  gt(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.gt", [this, x]);
  }

  /**
   * this > x.
   *
   * ```js
   * await new Tensor([1, 2]).gt(1).tolist(); // [false, true]
   * ```
   */
  greater(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.greater", [this, x]);
  }

  /**
   * this >= x; false where either is NaN.
   *
   * ```js
   * await new Tensor([1, 2]).ge(2).tolist(); // [false, true]
   * ```
   */
  ge(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.ge", [this, x]);
  }

  /**
   * this >= x; false where either is NaN.
   *
   * ```js
   * await new Tensor([1, 2]).ge(2).tolist(); // [false, true]
   * ```
   */
  greaterEqual(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.greater_equal", [this, x]);
  }

  /**
   * this <= x; false where either is NaN.
   *
   * ```js
   * await new Tensor([1, 2]).le(1).tolist(); // [true, false]
   * ```
   */
  le(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.le", [this, x]);
  }

  /**
   * this <= x; false where either is NaN.
   *
   * ```js
   * await new Tensor([1, 2]).le(1).tolist(); // [true, false]
   * ```
   */
  lessEqual(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.less_equal", [this, x]);
  }

  /**
   * this == x.
   *
   * ```js
   * await new Tensor([1, 2]).eq(2).tolist(); // [false, true]
   * ```
   */
  eq(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.eq", [this, x]);
  }

  /**
   * this != x.
   *
   * ```js
   * await new Tensor([1, 2]).ne(2).tolist(); // [true, false]
   * ```
   */
  ne(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.ne", [this, x]);
  }

  /**
   * this != x.
   *
   * ```js
   * await new Tensor([1, 2]).ne(2).tolist(); // [true, false]
   * ```
   */
  notEqual(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.not_equal", [this, x]);
  }

  /**
   * Whether each element is 0 (false).
   *
   * ```js
   * await new Tensor([0, 3]).logicalNot().tolist(); // [true, false]
   * ```
   */
  logicalNot(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.logical_not", [this]);
  }

  /**
   * Whether both are other than 0.
   *
   * ```js
   * await new Tensor([0, 2]).logicalAnd(new Tensor([1, 1], { dtype: "int32" })).tolist(); // [false, true]
   * ```
   */
  logicalAnd(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.logical_and", [this, x]);
  }

  /**
   * Whether at least one of both is other than 0.
   *
   * ```js
   * await new Tensor([0, 2]).logicalOr(new Tensor([0, 0], { dtype: "int32" })).tolist(); // [false, true]
   * ```
   */
  logicalOr(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.logical_or", [this, x]);
  }

  /**
   * Whether exactly one of both is other than 0.
   *
   * ```js
   * await new Tensor([0, 2]).logicalXor(new Tensor([1, 1], { dtype: "int32" })).tolist(); // [true, false]
   * ```
   */
  logicalXor(x: Operand): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.logical_xor", [this, x]);
  }

  /**
   * The constant `value` as a Tensor of shape (), or of shape (n) for an array of n constants.
   *
   * `dtype`: by default that of the Python integer, float or bool. Throws DTypeError, OverflowError.
   *
   * ```js
   * await Tensor.const(2.5).item(); // 2.5
   * ```
   */
  static const(
    ...args:
      | [value: Scalar, options?: ConstOptions]
      | [value: Scalar, dtype: DTypeName | null, options?: ConstOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.const", [...args]);
  }

  /**
   * 0 everywhere. Options: dtype, device, requiresGrad.
   *
   * ```js
   * await Tensor.zeros(2, 2).tolist(); // [[0, 0], [0, 0]]
   * ```
   */
  static zeros(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<ZerosOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<ZerosOptions>]
  ): Tensor<"float32">;
  static zeros(
    ...args:
      | [shape: readonly Size[], options?: ZerosOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: ZerosOptions]
  ): Tensor;
  static zeros(
    ...args:
      | [shape: readonly Size[], options?: ZerosOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: ZerosOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.zeros", [...args]);
  }

  /**
   * 1 everywhere. Options: dtype, device, requiresGrad.
   *
   * ```js
   * await Tensor.ones(2, 2).tolist(); // [[1, 1], [1, 1]]
   * ```
   */
  static ones(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<OnesOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<OnesOptions>]
  ): Tensor<"float32">;
  static ones(
    ...args:
      | [shape: readonly Size[], options?: OnesOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: OnesOptions]
  ): Tensor;
  static ones(
    ...args:
      | [shape: readonly Size[], options?: OnesOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: OnesOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.ones", [...args]);
  }

  /**
   * A Tensor whose elements do not matter: zeros. Options: dtype, device, requiresGrad.
   *
   * ```js
   * (await Tensor.empty(2, 3).ready()).shape; // [2, 3]
   * ```
   */
  static empty(
    ...args:
      | [shape: readonly Size[], options?: Undetermined<EmptyOptions>]
      | [...shape: Size[]]
      | [...shape: Size[], options: Undetermined<EmptyOptions>]
  ): Tensor<"float32">;
  static empty(
    ...args:
      | [shape: readonly Size[], options?: EmptyOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: EmptyOptions]
  ): Tensor;
  static empty(
    ...args:
      | [shape: readonly Size[], options?: EmptyOptions]
      | [...shape: Size[]]
      | [...shape: Size[], options: EmptyOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.empty", [...args]);
  }

  /**
   * `fillValue` in this Tensor's shape, by default with its dtype and on its device.
   *
   * ```js
   * await new Tensor([1, 2]).fullLike(3).tolist(); // [3, 3]
   * ```
   */
  fullLike(fillValue: Scalar, options?: FullLikeOptions): Tensor {
    return callTensor(this[owner], "Tensor.full_like", [this, fillValue, options]);
  }

  /**
   * 0 in this Tensor's shape, by default with its dtype and on its device.
   *
   * ```js
   * await new Tensor([5, 6]).zerosLike().tolist(); // [0, 0]
   * ```
   */
  zerosLike(options?: ZerosLikeOptions): Tensor {
    return callTensor(this[owner], "Tensor.zeros_like", [this, options]);
  }

  /**
   * 1 in this Tensor's shape, by default with its dtype and on its device.
   *
   * ```js
   * await new Tensor([5, 6]).onesLike().tolist(); // [1, 1]
   * ```
   */
  onesLike(options?: OnesLikeOptions): Tensor {
    return callTensor(this[owner], "Tensor.ones_like", [this, options]);
  }

  /**
   * A Tensor like this one whose elements do not matter.
   *
   * ```js
   * (await new Tensor([1, 2]).emptyLike().ready()).shape; // [2]
   * ```
   */
  emptyLike(options?: EmptyLikeOptions): Tensor {
    return callTensor(this[owner], "Tensor.empty_like", [this, options]);
  }

  /**
   * The constant `value` in this Tensor's dtype and shape.
   *
   * ```js
   * await new Tensor([1, 2]).constLike(7).tolist(); // [7, 7]
   * ```
   */
  constLike(value: Scalar): Tensor {
    return callTensor(this[owner], "Tensor.const_like", [this, value]);
  }

  /**
   * `fillValue` in `shape`, with this dtype and on this device.
   *
   * ```js
   * await new Tensor([1, 2]).newFull([2], 7).tolist(); // [7, 7]
   * ```
   */
  newFull(shape: readonly number[], fillValue: Scalar): Tensor {
    return callTensor(this[owner], "Tensor.new_full", [this, shape, fillValue]);
  }

  /**
   * Zeros of `shape`, with this dtype and on this device.
   *
   * ```js
   * await new Tensor([1, 2]).newZeros(2).tolist(); // [0, 0]
   * ```
   */
  newZeros(...args: [shape: readonly Size[]] | [...shape: Size[]]): Tensor {
    return callTensor(this[owner], "Tensor.new_zeros", [this, ...args]);
  }

  /**
   * Ones of `shape`, with this dtype and on this device.
   *
   * ```js
   * await new Tensor([1, 2]).newOnes(2).tolist(); // [1, 1]
   * ```
   */
  newOnes(...args: [shape: readonly Size[]] | [...shape: Size[]]): Tensor {
    return callTensor(this[owner], "Tensor.new_ones", [this, ...args]);
  }

  /**
   * start, start + step, ... up to but not including `stop`; `arange(n)` is 0..n-1. 1-D.
   *
   * The dtype is the default integer (int64 where that is too small), or the default float when an argument is
   * a float. Throws ArgumentError, OverflowError.
   *
   * ```js
   * await Tensor.arange(5, 10, 2).tolist(); // [5, 7, 9]
   * ```
   */
  static arange(
    ...args:
      | [start: Size | number, options?: ArangeOptions]
      | [start: Size | number, stop: Size | number | null, options?: ArangeOptions]
      | [start: Size | number, stop: Size | number | null, step: number, options?: ArangeOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.arange", [...args]);
  }

  /**
   * `steps` evenly spaced values from `start` to `stop`, both included. 1-D.
   *
   * Throws ArgumentError, DTypeError for bool.
   *
   * ```js
   * await Tensor.linspace(0, 1, 5).tolist(); // [0, 0.25, 0.5, 0.75, 1]
   * ```
   */
  static linspace(
    ...args:
      | [start: number, stop: number, steps: number, options?: LinspaceOptions]
      | [start: number, stop: number, steps: number, dtype: DTypeName | null, options?: LinspaceOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.linspace", [...args]);
  }

  /**
   * 1 on the main diagonal of an (n, m) matrix, 0 elsewhere; m defaults to n. Throws ShapeError.
   *
   * ```js
   * await Tensor.eye(2).tolist(); // [[1, 0], [0, 1]]
   * ```
   */
  static eye(
    ...args:
      | [n: number, options?: EyeOptions]
      | [n: number, m: number | null, options?: EyeOptions]
      | [n: number, m: number | null, dtype: DTypeName | null, options?: EyeOptions]
  ): Tensor {
    return callTensor(this.bound, "Tensor.eye", [...args]);
  }

  /**
   * The elements converted to `dtype`; floats truncate and saturate into integers.
   *
   * saturate: for 8-bit floats. true: values beyond the largest number, infinity too, become that number;
   * false: they become infinite (NaN in fp8e4m3, which has no infinity). null follows torch: fp8e4m3
   * saturates, fp8e5m2 does not. Throws DTypeError, also for `saturate` with another dtype.
   *
   * ```js
   * await new Tensor([1.7, -1.7]).cast("int32").tolist(); // [1, -1]
   * ```
   */
  cast<N extends DTypeName>(
    ...args: [dtype: N, options?: CastOptions] | [dtype: N, saturate: boolean | null, options?: CastOptions]
  ): Tensor<DTypeOf<N>> {
    return callTensor(this[owner], "Tensor.cast", [this, ...args]);
  }

  /**
   * The same bits as elements of `dtype`: a view, if these have the same size.
   *
   * Else the size of the last axis changes in proportion, low bytes first: (..., 4) of uint8 become (...,
   * 1) of float32. Throws DTypeError, ShapeError.
   *
   * ```js
   * await new Tensor([1]).bitcast("int32").tolist(); // [1065353216]
   * await new Tensor([1]).bitcast("uint8").tolist(); // [0, 0, 128, 63]
   * ```
   */
  bitcast(dtype: DTypeName): Tensor {
    return callTensor(this[owner], "Tensor.bitcast", [this, dtype]);
  }

  /**
   * this in the dtype of `other`.
   *
   * ```js
   * await new Tensor([1, 2]).castLike(new Tensor([0.5])).tolist(); // [1, 2]
   * ```
   */
  castLike(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.cast_like", [this, other]);
  }

  /**
   * this in the dtype of `other`.
   *
   * ```js
   * await new Tensor([1, 2]).castLike(new Tensor([0.5])).tolist(); // [1, 2]
   * ```
   */
  typeAs(other: Tensor): Tensor {
    return callTensor(this[owner], "Tensor.type_as", [this, other]);
  }

  /**
   * Cast to float32.
   *
   * ```js
   * await new Tensor([1, 2]).float().tolist(); // [1, 2]
   * ```
   */
  float(): Tensor<"float32"> {
    return callTensor(this[owner], "Tensor.float", [this]);
  }

  /**
   * Cast to float16.
   *
   * ```js
   * (await new Tensor([1]).half().ready()).dtype; // "float16"
   * ```
   */
  half(): Tensor<"float16"> {
    return callTensor(this[owner], "Tensor.half", [this]);
  }

  /**
   * Cast to bfloat16.
   *
   * ```js
   * (await new Tensor([1]).bfloat16().ready()).dtype; // "bfloat16"
   * ```
   */
  bfloat16(): Tensor {
    return callTensor(this[owner], "Tensor.bfloat16", [this]);
  }

  /**
   * Cast to float64.
   *
   * ```js
   * (await new Tensor([1]).double().ready()).dtype; // "float64"
   * ```
   */
  double(): Tensor<"float64"> {
    return callTensor(this[owner], "Tensor.double", [this]);
  }

  /**
   * Cast to int32.
   *
   * ```js
   * await new Tensor([1.7]).int().tolist(); // [1]
   * ```
   */
  int(): Tensor<"int32"> {
    return callTensor(this[owner], "Tensor.int", [this]);
  }

  /**
   * Cast to int64.
   *
   * ```js
   * (await new Tensor([1]).long().ready()).dtype; // "int64"
   * ```
   */
  long(): Tensor<"int64"> {
    return callTensor(this[owner], "Tensor.long", [this]);
  }

  /**
   * Cast to int16.
   *
   * ```js
   * (await new Tensor([1]).short().ready()).dtype; // "int16"
   * ```
   */
  short(): Tensor {
    return callTensor(this[owner], "Tensor.short", [this]);
  }

  /**
   * Cast to bool: whether each element differs from 0.
   *
   * ```js
   * await new Tensor([0, 2]).bool().tolist(); // [false, true]
   * ```
   */
  bool(): Tensor<"bool"> {
    return callTensor(this[owner], "Tensor.bool", [this]);
  }

  /**
   * The number of elements of `maxShape`.
   *
   * ```js
   * await Tensor.zeros(2, 3).maxNumel(); // 6
   * ```
   */
  maxNumel(): Promise<number> {
    return callValue(this[owner], "Tensor.max_numel", [this]);
  }

  /**
   * `x` as a Tensor: a number in the dtype that this Tensor and it promote to, of shape ().
   *
   * ```js
   * (await new Tensor([1.5]).ufix(2).ready()).dtype; // "float32"
   * ```
   */
  ufix(x: Operand): Tensor {
    return callTensor(this[owner], "Tensor.ufix", [this, x]);
  }
}

addPythonNames(Tensor);
