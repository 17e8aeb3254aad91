/** `nn.data`: data sets that are read while a model trains. */

import type { Session } from "../session";
import type { Host } from "../sources";
import type { Examples } from "./examples";
import { fromCSV, type CSVOptions, type CSVSource } from "./from_csv";
import { fromExamples, type Example, type ExampleOptions } from "./from_examples";
import { fromImages, type ImagesOptions, type LabelledImage } from "./from_images";
import type { ItemsOf } from "./item_source";

/** Data sets for `fit`, or for a loop over their `batches`. */
export interface Datasets {
  /**
   * Examples [input, target] from an array, an iterable (also an asynchronous one), or a stream; or from a function
   * that gives one for each epoch, which generators and streams need for more than one.
   *
   *     const data = nn.data.fromExamples(points.map((p) => [[p.x, p.y], p.kind]), { dtypes: ["float32", "int32"] });
   *
   * Throws ArgumentError.
   */
  fromExamples(source: ItemsOf<Example>, options?: ExampleOptions): Examples;
  /**
   * The rows of a CSV file (RFC 4180, with other delimiters, too): an address, in Node also a path, a File, bytes, or
   * a stream. It is read in each epoch; `await data.load()` keeps the rows in memory.
   *
   *     const data = nn.data.fromCSV("iris.csv", { targets: "species", classes: ["setosa", "versicolor", "virginica"] });
   *
   * Inputs are float32, [columns] for each row. Reading rejects with ArgumentError for fields that are not numbers,
   * and for damaged records, by their number; with FetchError.
   */
  fromCSV(source: CSVSource, options: CSVOptions): Examples;
  /**
   * Pictures with their classes: Files, addresses or pixels ({ data, width, height }); Node decodes no files.
   *
   *     const data = nn.data.fromImages(files.map((file) => [file, file.name.split("-")[0]]), {
   *       width: 64, height: 64, classes: ["cat", "dog"],
   *     });
   *
   * Inputs are float32 from 0 to 1, [channels, height, width]; targets are int32. They are decoded when their batch
   * is due. Throws ArgumentError.
   */
  fromImages(source: ItemsOf<LabelledImage>, options: ImagesOptions): Examples;
}

/** `nn.data` of a session. */
export function datasetsOf(session: Session, host: Host): Datasets {
  return {
    fromExamples: (source, options) => fromExamples(session, source, options),
    fromCSV: (source, options) => fromCSV(session, host, source, options),
    fromImages: (source, options) => fromImages(session, host, source, options),
  };
}
