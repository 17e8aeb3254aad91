/** Points of two classes in the plane, to be told apart. */

import { randomFrom } from "./random";

/** Points from -1 to 1, `x` and `y` one after the other, and the class of each. */
export interface Points {
  readonly places: Float32Array<ArrayBuffer>;
  readonly classes: Int32Array<ArrayBuffer>;
}

const COUNT = 240;

type Place = readonly [x: number, y: number];

/** A point of a class; `t` goes from 0 to 1 over the class's points. */
type Shape = (label: number, t: number, random: () => number) => Place;

const moons: Shape = (label, t) => {
  const angle = Math.PI * t;
  return label === 0
    ? [0.55 * Math.cos(angle) - 0.25, 0.6 * Math.sin(angle) - 0.15]
    : [0.25 - 0.55 * Math.cos(angle), 0.15 - 0.6 * Math.sin(angle)];
};

const circles: Shape = (label, t, random) => {
  const [angle, radius] = [2 * Math.PI * t, label === 0 ? 0.35 * Math.sqrt(random()) : 0.7 + 0.1 * random()];
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
};

const spirals: Shape = (label, t) => {
  const [angle, radius] = [3.2 * Math.PI * t + Math.PI * label, 0.08 + 0.8 * t];
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
};

const checkers: Shape = (label, _, random) => {
  const [x, y] = [2 * random() - 1, 2 * random() - 1];
  const isEqual = x * y > 0;
  return [0.08 * Math.sign(x) + 0.8 * x, 0.08 * Math.sign(y) + 0.8 * (isEqual === (label === 0) ? y : -y)];
};

/** The data sets, by name. */
export const DATA_SETS: Readonly<Record<string, Shape>> = { moons, circles, spirals, checkers };

/** The points of a data set; `noise`: how far they are moved at most. */
export function pointsOf(name: string, noise: number): Points {
  const shape = DATA_SETS[name];
  if (shape === undefined) throw new Error(`internal: expected a data set, got ${name}`);
  const random = randomFrom(1);
  const places = new Float32Array(2 * COUNT);
  const classes = new Int32Array(COUNT);
  const move = (): number => noise * (random() + random() - 1);
  for (let i = 0; i < COUNT; i++) {
    const label = i % 2;
    const [x, y] = shape(label, Math.floor(i / 2) / (COUNT / 2), random);
    places.set([x + move(), y + move()], 2 * i);
    classes[i] = label;
  }
  return { places, classes };
}
