/** The functions that load exported models, on any host. */

import { SignatureError } from "./errors";
import { openLanguageModel, type LanguageModel } from "./generation/language_model";
import { openClassifier, openEncoder, type Classifier, type Encoder } from "./generation/text_readers";
import type { ModelHost } from "./loading";
import { loadModel, type Model } from "./model";
import { signaturePlace, signedHead, signedPieces } from "./signatures";
import { collect, measured, type ModelOptions, type OpenedFile, type TextModelOptions } from "./source";

/** What loaders need of a host, whose models come from a `Source`, with `Options`. */
interface LoaderHost<Source, Options extends ModelOptions> {
  /** What a model gets of the host. Throws RangeError for a wrong option, so it comes before a file is opened. */
  readonly hostOf: (options: Options) => ModelHost;
  /** `what`: the name of the calling function, for errors. */
  readonly open: (source: Source, what: string, options: Options) => Promise<OpenedFile>;
}

interface Loaders<Source, Options extends ModelOptions> {
  readonly load: (source: Source, options?: Options) => Promise<Model>;
  readonly loadLanguageModel: (
    source: Source,
    options?: Options & TextModelOptions,
  ) => Promise<LanguageModel>;
  readonly loadTextEncoder: (source: Source, options?: Options & TextModelOptions) => Promise<Encoder>;
  readonly loadTextClassifier: (source: Source, options?: Options & TextModelOptions) => Promise<Classifier>;
}

/** The loaders of a host. */
export function loadersOf<Source, Options extends ModelOptions>({
  hostOf,
  open,
}: LoaderHost<Source, Options>): Loaders<Source, Options> {
  const bytesOf = async (
    source: Source,
    what: string,
    options: Options,
  ): Promise<AsyncIterable<Uint8Array>> => {
    const head = await signedHeadOf(source, what, options);
    const pieces = measured(await open(source, what, options), options);
    return head === undefined ? pieces : signedPieces(pieces, head);
  };
  /** The first bytes of the file that was signed, in hexadecimal; undefined where nobody has to have signed it. */
  const signedHeadOf = async (
    source: Source,
    what: string,
    options: Options,
  ): Promise<string | undefined> => {
    const { publicKey, signature, ...others } = options;
    if (publicKey === undefined && signature === undefined) return undefined;
    if (publicKey === undefined) throw new RangeError(`${what}: signature: expected a publicKey with it`);
    const place = signature ?? signaturePlace(source);
    if (place === undefined) {
      throw new SignatureError(`${what}: expected the option signature for a source without an address`);
    }
    const alone = { ...(others as Options), sha256: undefined, onProgress: undefined };
    try {
      return await signedHead(await collect(await open(place as Source, what, alone), alone), publicKey);
    } catch (cause) {
      const { status, code } = cause as { status?: number; code?: string };
      if (status !== 404 && code !== "ENOENT") throw cause;
      throw new SignatureError(`${what}: expected a signature beside the file, got none`, { cause });
    }
  };
  const chosen = (options: Options): ModelHost => ({
    ...hostOf(options),
    device: options.device,
    maxMemory: options.maxMemory,
  });
  /** A loader of models of text. */
  const ofText =
    <T>(
      what: string,
      make: (
        bytes: AsyncIterable<Uint8Array>,
        host: ModelHost,
        tokenizers: TextModelOptions["tokenizers"],
      ) => Promise<T>,
    ) =>
    async (source: Source, options = {} as Options & TextModelOptions): Promise<T> => {
      const host = chosen(options);
      return make(await bytesOf(source, what, options), host, options.tokenizers);
    };
  return {
    async load(source, options = {} as Options) {
      const host = chosen(options);
      return loadModel(await bytesOf(source, "load", options), host);
    },
    loadLanguageModel: ofText("loadLanguageModel", openLanguageModel),
    loadTextEncoder: ofText("loadTextEncoder", openEncoder),
    loadTextClassifier: ofText("loadTextClassifier", openClassifier),
  };
}
