/** The class `Tensor`, from the manifest's. */

import { resultDType, resultDTypeUnlessNamed, takesOperand } from "./result_dtypes.mjs";
import { argumentName, comment, methodName, signature, typeOf } from "./types.mjs";

/** What `wasm_runtime/src/api` has by hand, or what only Python can use. */
const BY_HAND = new Set(
  [
    ...[
      "grad",
      "requires_grad",
      "training",
      "dtype",
      "shape",
      "device",
      "ndim",
      "numel",
      "size",
      "element_size",
    ],
    ...["nbytes", "is_floating_point", "data", "item", "tolist", "__getitem__", "__setitem__", "full"],
    ...["sequential", "train", "test", "is_param", "is_leaf", "max_shape", "rearrange", "dim"],
    ...["nelement", "register_hook", "unique"],
  ].map((name) => `Tensor.${name}`),
);

/** Those that have a static form too, of an array: `Tensor.cat([a, b])`. */
const OF_AN_ARRAY = new Set(["Tensor.cat", "Tensor.stack", "Tensor.meshgrid"]);

function capital(name) {
  return name[0].toUpperCase() + name.slice(1);
}

/** Methods that divide a tensor: see `wasm_runtime/src/api/shapes/parts.ts`. */
const DIVISIONS = new Set(["Tensor.unbind", "Tensor.split", "Tensor.chunk"]);

/** What a method's body is, and its type, by the kind of its result. */
export function bodyOf({ id, result, kind, parameters }, session, passed) {
  const given = [...(kind === "instance" ? ["this"] : []), ...(passed ? [passed] : [])];
  if (parameters.at(-1)?.type === "state_dict") given.push("{}"); // an object at the end would be options
  const args = `[${given.join(", ")}]`;
  const call = (helper, more = "") => `return ${helper}(${session}, ${JSON.stringify(id)}, ${args}${more});`;
  switch (result.kind) {
    case "tensor": {
      const dtype = resultDType(id);
      return [dtype === undefined ? "Tensor" : `Tensor<${dtype}>`, call("callTensor")];
    }
    case "tensors":
      if (DIVISIONS.has(id)) return ["Tensor<D>[]", call("callParts").replace(/;$/, " as Tensor<D>[];")];
      return result.count === null
        ? ["Promise<Tensor[]>", call("callTensorList")]
        : [
            typeof result.count === "number"
              ? `[${Array(result.count).fill("Tensor").join(", ")}]`
              : "Tensor[]",
            call("callTensors", `, ${JSON.stringify(result.count)}`).replace(
              /;$/,
              typeof result.count === "number"
                ? ` as [${Array(result.count).fill("Tensor").join(", ")}];`
                : ";",
            ),
          ];
    case "nested": {
      const type = result.counts.map((n) =>
        n === null ? "Tensor" : `[${Array(n).fill("Tensor").join(", ")}]`,
      );
      const call = `callNested(${session}, ${JSON.stringify(id)}, ${args}, ${JSON.stringify(result.counts)})`;
      return [`[${type.join(", ")}]`, `return ${call} as [${type.join(", ")}];`];
    }
    case "self":
      return ["this", `return callSelf(this, ${JSON.stringify(id)}, [${passed}]);`];
    case "none":
      return ["void", call("callVoid").replace("return ", "")];
    case "state_dict":
      return ["Promise<StateDict>", call("callStateDict")];
    case "value":
      return [`Promise<${typeOf(result.type, id)}>`, call("callValue")];
    default:
      throw new Error(
        `${id}: expected a result with a TypeScript form, got ${result.kind}: write it by hand`,
      );
  }
}

/** One method and its options. */
export function method(entry, names, { session = "this[owner]", owner = "", overrides = false } = {}) {
  const name = methodName(entry.name);
  const optionsName = `${owner}${capital(name.replace(/_$/, ""))}Options`;
  const prefix = entry.kind === "instance" ? "" : "static ";
  const modifier = overrides ? "override " : prefix;
  const bound = entry.kind === "instance" ? session : "this.bound";
  if (entry.result.kind === "context") {
    const text = `${comment(entry.doc, "  ")}  ${prefix}${name}<T>(run: () => T): T {\n    return callContext(${bound}, ${JSON.stringify(entry.id)}, run, []);\n  }\n`;
    return { options: "", text };
  }
  if (entry.parameters.some(({ type }) => type.startsWith("callback"))) {
    return { options: "", text: withFunction(entry, name, session) };
  }
  const { options, list, passed } = signature(entry.parameters, optionsName, names, entry.id);
  const head = `${modifier}${name}`;
  if (entry.pair_with !== undefined) {
    return {
      options,
      text: comment(entry.doc, "  ") + withPair(entry, head, list, optionsName, bound, passed),
    };
  }
  const [type, body] = bodyOf(entry, bound, passed);
  const text = `${comment(entry.doc, "  ")}${forms(entry.id, head, list, type, optionsName)} {\n    ${body}\n  }\n`;
  let also = "";
  if (OF_AN_ARRAY.has(entry.id)) {
    const helper = entry.result.kind === "tensor" ? "callTensor" : "callTensors";
    const count = entry.result.kind === "tensor" ? "" : `, ${JSON.stringify(entry.result.count)}`;
    also = `  /** \`${name}\` of the tensors in an array. */\n  static ${name}(tensors: readonly Tensor[], options: ${optionsName} = {}): ${type} {\n    return ${helper}(this.bound, ${JSON.stringify(entry.id)}, [...tensors, options]${count});\n  }\n`;
  }
  return { options, text: text + also };
}

/** A method that returns two tensors where the argument `pair_with` is given. */
function withPair({ id, parameters, pair_with }, head, list, optionsName, session, passed) {
  const index = parameters.findIndex(({ name }) => name === pair_with);
  const name = argumentName(pair_with);
  const [given, left] = parameters[index].type === "bool" ? ["true", "false"] : ["number", "null"];
  const options = new RegExp(`options\\?: ${optionsName}`);
  const parts = list.replace(/^\.\.\.args: /, "").split(" | [");
  const forms = (list.startsWith("...args") ? parts : [`[${list}]`]).map((part) => part.replace(/^\[?/, "["));
  const isPositional = (form) => form.includes(`${name}: `);
  const pair = forms.map((form) =>
    isPositional(form)
      ? form.replace(/(\w+): number \| null/, "$1: number")
      : form.replace(options, `options: ${optionsName} & { readonly ${name}: ${given} }`),
  );
  const single = forms
    .filter((form) => !isPositional(form))
    .map((form) => form.replace(options, `options?: ${optionsName} & { readonly ${name}?: ${left} }`));
  const call = `callTensorOrPair(${session}, ${JSON.stringify(id)}, [this, ${passed}], "${pair_with}", ${index + 1})`;
  return `  ${head}(...args: ${pair.join(" | ")}): [Tensor, Tensor];
  ${head}(...args: ${single.join(" | ")}): Tensor;
  ${head}(${list}): Tensor | [Tensor, Tensor] {
    return ${call};
  }\n`;
}

/** A method that calls a function of the user's, and waits. The method of this name without one does not. */
function withFunction({ id, doc, parameters }, name, session) {
  const [{ name: argument }] = parameters;
  return `${comment(doc, "  ")}  ${name}With(${argument}: () => Tensor): Promise<Tensor> {
    return callWithFunction(${session}, ${JSON.stringify(id)}, this, ${argument});
  }\n`;
}

/** The head of a method: of its forms, where the dtype of the result depends on how it is called. */
function forms(id, head, list, type, optionsName) {
  if (takesOperand(id)) {
    return `  ${head}<X extends Operand>(${list.replaceAll("x: Operand", "x: X")}): ${type}`;
  }
  if (id === "Tensor.cast") {
    const [of, N] = ["<N extends DTypeName>", "dtype: N"];
    return `  ${head}${of}(${list.replaceAll("dtype: DTypeName", N)}): Tensor<DTypeOf<N>>`;
  }
  const dtype = resultDTypeUnlessNamed(id);
  if (dtype === undefined) return `  ${head}(${list}): ${type}`;
  const undetermined = list
    .replaceAll(optionsName, `Undetermined<${optionsName}>`)
    .replaceAll(/dtype: DTypeName \| null/g, "dtype: null");
  return `  ${head}(${undetermined}): Tensor<${dtype}>;\n  ${head}(${list}): ${type};\n  ${head}(${list}): ${type}`;
}

export function tensorFile(manifest, names) {
  const tensor = manifest.classes.find(({ id }) => id === "Tensor");
  const known = new Set([...tensor.attributes, ...tensor.properties, ...tensor.methods].map(({ id }) => id));
  for (const id of BY_HAND) if (!known.has(id)) throw new Error(`${id}: expected it in the manifest`);
  const made = tensor.methods
    .filter(({ id, result }) => !BY_HAND.has(id) && result.kind !== "host")
    .map((entry) => method(entry, names));
  const properties = tensor.properties
    .filter(({ id }) => !BY_HAND.has(id))
    .map(({ name, doc, result, id }) => {
      if (result.kind !== "tensor") throw new Error(`${id}: expected a property by hand, got ${result.kind}`);
      const dtype = resultDType(id);
      const type = dtype === undefined ? "Tensor" : `Tensor<${dtype}>`;
      return `${comment(doc, "  ")}  get ${name}(): ${type} {\n    return callTensor(this[owner], "$get", [this, "${name}"]);\n  }\n`;
    });
  return `
import { addPythonNames, callContext, callParts, callSelf, callTensor, callTensorOrPair, callTensors, callValue, callVoid } from "../calls";
import type { DType, DTypeName, DTypeOf, Scalar } from "../dtypes";
import type { TensorData } from "../make";
import type { FloatOf, Operated, ReducedDType, Undetermined, WithNumber } from "../result_dtypes";
import { owner } from "../handle";
import { TensorBase, type Operand, type Size } from "../tensor_base";

${made.map((m) => m.options).join("\n")}

/**
 * A lazy n-dimensional array with gradients: nothing is computed before \`data\`, \`item\`, \`tolist\` or \`realize\` asks.
 *
 * \`\`\`js
 * await new Tensor([[1, 2], [3, 4]]).add(1).tolist(); // [[2, 3], [4, 5]]
 * \`\`\`
 */
export class Tensor<D extends DType = DType> extends TensorBase<D> {
${[...properties, ...made.map((m) => m.text)].join("\n")}
}

addPythonNames(Tensor);
`;
}
