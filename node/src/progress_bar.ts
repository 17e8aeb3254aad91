/** A bar of progress in the terminal: one line that is redrawn; where output is a file, a line after every tenth. */

import { describeProgress, type OnProgress } from "../../wasm_runtime/src/progress";

/** What a bar is written to: a stream, as `process.stderr`. */
export interface ProgressStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

const WIDTH = 20;
const EIGHTHS = " ▏▎▍▌▋▊▉";

function barOf(fraction: number): string {
  const eighths = Math.round(8 * WIDTH * Math.min(fraction, 1));
  const rest = eighths % 8 === 0 ? "" : (EIGHTHS[eighths % 8] ?? "");
  return ("█".repeat(Math.floor(eighths / 8)) + rest).padEnd(WIDTH);
}

/**
 * Shows progress as a bar on standard error: for the option `onProgress` of `create`, `fit`, `load` and others.
 *
 *     await fit(model, data, { loss: "mse", epochs: 5, onProgress: progressBar() });
 */
export function progressBar(stream: ProgressStream = process.stderr): OnProgress {
  let [stage, tenth, isOpen] = ["", -1, false];
  return (progress) => {
    const { fraction } = progress;
    const isLive = stream.isTTY === true;
    if (progress.stage !== stage) {
      if (isOpen) stream.write("\n");
      [stage, tenth, isOpen] = [progress.stage, -1, false];
    }
    const reached = Math.floor(10 * fraction);
    if (reached <= tenth && (!isLive || !isOpen)) return; // nothing new, or it has ended
    tenth = reached;
    const line = `|${barOf(fraction)}| ${describeProgress(progress)}`;
    isOpen = isLive && fraction < 1;
    stream.write(isLive ? `\r${line}\x1b[K${isOpen ? "" : "\n"}` : `${line}\n`);
  };
}
