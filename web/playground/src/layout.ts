/** The worker that says where the nodes of a graph are drawn: a large graph takes longer than a page may stand still. */

import { Graph, layout } from "@dagrejs/dagre";

export interface Box {
  readonly id: number;
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface LayoutRequest {
  readonly number: number;
  readonly boxes: readonly Box[];
  readonly edges: readonly (readonly [from: number, to: number])[];
}

export interface LayoutAnswer {
  readonly number: number;
  readonly width: number;
  readonly height: number;
  /** The middle of each box. */
  readonly places: readonly Point[];
  readonly lines: readonly (readonly Point[])[];
}

const [BETWEEN_NODES, BETWEEN_LAYERS, MARGIN] = [14, 34, 12];

function place({ number, boxes, edges }: LayoutRequest): LayoutAnswer {
  const graph = new Graph();
  graph.setGraph({ nodesep: BETWEEN_NODES, ranksep: BETWEEN_LAYERS, marginx: MARGIN, marginy: MARGIN });
  for (const { id, width, height } of boxes) graph.setNode(String(id), { width, height });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to), {});
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    number,
    width,
    height,
    places: boxes.map(({ id }) => graph.node(String(id)) as Point),
    lines: edges.map(([from, to]) => (graph.edge(String(from), String(to)) as { points: Point[] }).points),
  };
}

addEventListener("message", (event: MessageEvent<LayoutRequest>) => {
  postMessage(place(event.data));
});
