/** The functions that load exported models, on any host. */

import { openLanguageModel, type LanguageModel } from "./generation/language_model";
import { openClassifier, openEncoder, type Classifier, type Encoder } from "./generation/text_readers";
import type { ModelHost } from "./loading";
import { loadModel, type Model } from "./model";
import { measured, type ModelOptions, type OpenedFile, type TextModelOptions } from "./source";

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
  ): Promise<AsyncIterable<Uint8Array>> => measured(await open(source, what, options), options);
  const chosen = (options: Options): ModelHost => ({ ...hostOf(options), device: options.device });
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
