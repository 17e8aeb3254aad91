/** Two texts side by side, their lines compared; on a narrow screen one below the other. */

import { diffArrays } from "diff";

import { make } from "./dom";

/** Lines that both texts have, or lines of each in the same place. */
export interface Hunk {
  readonly same: boolean;
  readonly left: readonly string[];
  readonly right: readonly string[];
}

/** This many equal lines are shown around those that differ. */
const CONTEXT = 3;

/** Texts of which more lines differ are not aligned further: that would take too long. */
const MAX_EDITS = 4000;

/** The lines of two texts, compared. */
export function hunksOf(left: string, right: string): Hunk[] {
  const [before, after] = [left.split("\n"), right.split("\n")];
  const changes = diffArrays(before, after, { maxEditLength: MAX_EDITS });
  if (changes === undefined) return [{ same: false, left: before, right: after }];
  const hunks: Hunk[] = [];
  let [removed, added]: [string[], string[]] = [[], []];
  const close = (): void => {
    if (removed.length + added.length > 0) hunks.push({ same: false, left: removed, right: added });
    [removed, added] = [[], []];
  };
  for (const change of changes) {
    if (change.removed) removed.push(...change.value);
    else if (change.added) added.push(...change.value);
    else {
      close();
      hunks.push({ same: true, left: change.value, right: change.value });
    }
  }
  close();
  return hunks;
}

/** How two texts differ, in words. */
export function differenceOf(hunks: readonly Hunk[]): string {
  const count = (side: "left" | "right"): number =>
    hunks.reduce((sum, hunk) => sum + (hunk.same ? 0 : hunk[side].length), 0);
  const [left, right] = [count("left"), count("right")];
  const lines = (n: number): string => (n === 1 ? "1 line" : `${n} lines`);
  if (left + right === 0) return "The code is the same.";
  return `${lines(left)} on the left alone, ${lines(right)} on the right alone.`;
}

/** Equal lines, in both columns. */
function sameLines(lines: readonly string[]): HTMLElement {
  const right = make("pre", "", lines.join("\n"));
  right.setAttribute("aria-hidden", "true"); // it has been read on the left
  return make("div", "hunk same", make("pre", "", lines.join("\n")), right);
}

/** Lines of one text alone, which those hear of who do not see the column. */
function ownLines(side: "left" | "right", lines: readonly string[]): HTMLElement {
  const column = make("pre", side);
  if (lines.length > 0) column.append(make("span", "hidden-text", `${side} alone: `), lines.join("\n"));
  return column;
}

/** Equal lines, of which those far from any difference are folded. */
function foldedLines(lines: readonly string[], isFirst: boolean, isLast: boolean): HTMLElement[] {
  const [head, tail] = [isFirst ? 0 : CONTEXT, isLast ? 0 : CONTEXT];
  const folded = lines.slice(head, lines.length - tail);
  if (folded.length < CONTEXT) return [sameLines(lines)];
  const fold = make("details", "", make("summary", "", `${folded.length} equal lines`), sameLines(folded));
  const around = [lines.slice(0, head), lines.slice(lines.length - tail)];
  const [before, after] = around.map((part) => (part.length > 0 ? [sameLines(part)] : []));
  return [...(before ?? []), fold, ...(after ?? [])];
}

/** How long two texts are, in words. */
export function lengthsOf(left: string, right: string): string {
  const [before, after] = [left, right].map((text) => text.trimEnd().split("\n").length);
  return `${before} lines on the left, ${after} on the right.`;
}

/** Two texts in different languages, of which no line is compared. */
export function besideElements(left: string, right: string): HTMLElement[] {
  return [make("div", "hunk", make("pre", "", left), make("pre", "", right))];
}

/** The elements that show compared lines. */
export function diffElements(hunks: readonly Hunk[]): HTMLElement[] {
  return hunks.flatMap(({ same, left, right }, i) => {
    if (same) return foldedLines(left, i === 0, i === hunks.length - 1);
    return [make("div", "hunk", ownLines("left", left), ownLines("right", right))];
  });
}
