/**
 * The changes of TypeScript files, as JSON: one operator, condition, constant, statement or result at a time, as in
 * `python_changes.py`. Types, texts and arguments of exceptions stay.
 *
 *     node typescript_changes.mjs FILE...
 */

import { readFileSync } from "node:fs";

import ts from "typescript";

const { SyntaxKind } = ts;

/** By operator: its kind, and what it becomes. */
const OPERATORS = new Map([
  ...[
    ["<", "<=", ">="],
    ["<=", "<", ">"],
    [">", ">=", "<="],
    [">=", ">", "<"],
    ["===", "!=="],
    ["!==", "==="],
    ["==", "!="],
    ["!=", "=="],
  ].map(([old, ...others]) => [old, ["comparison", others]]),
  ...["+ -", "- +", "* +", "/ *", "% /", "** *", "<< >>", ">> <<", ">>> <<", "& |", "| &", "^ &"]
    .concat([
      "+= -=",
      "-= +=",
      "*= +=",
      "/= *=",
      "%= /=",
      "<<= >>=",
      ">>= <<=",
      ">>>= <<=",
      "&= |=",
      "|= &=",
      "^= &=",
    ])
    .map((pair) => pair.split(" "))
    .map(([old, other]) => [old, ["arithmetic", [other]]]),
  ["&&", ["and, or", ["||"]]],
  ["||", ["and, or", ["&&"]]],
  ["??", ["and, or", ["&&"]]],
]);
const CALLS = new Map(
  Object.entries({ min: "max", max: "min", some: "every", every: "some", floor: "ceil", ceil: "floor" }),
);
const isText = (node) => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);

/** The changes that begin at a node: kind, node, text. */
function* changesOf(node, text) {
  if (ts.isBinaryExpression(node)) {
    const [kind, others] = OPERATORS.get(text(node.operatorToken)) ?? ["", []];
    const joinsTexts = isText(node.left) || isText(node.right);
    if (!joinsTexts) for (const other of others) yield [kind, node.operatorToken, other];
  } else if (ts.isPrefixUnaryExpression(node)) {
    const { operator, operand } = node;
    const isSign = operator === SyntaxKind.MinusToken || operator === SyntaxKind.TildeToken;
    if (isSign || operator === SyntaxKind.ExclamationToken) yield ["not, minus", node, text(operand)];
  } else if (ts.isNumericLiteral(node)) {
    const value = Number(node.text);
    yield ["constant", node, String(value + 1)];
    yield ["constant", node, value >= 1 ? String(value - 1) : `(${value - 1})`];
  } else if (node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword) {
    yield ["constant", node, String(node.kind === SyntaxKind.FalseKeyword)];
  } else if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
    const other = CALLS.get(node.expression.name.text);
    if (other !== undefined) yield ["call", node.expression.name, other];
  }
  if (ts.isIfStatement(node)) for (const to of ["true", "false"]) yield ["condition", node.expression, to];
  if (ts.isWhileStatement(node)) yield ["condition", node.expression, "false"];
  if (ts.isConditionalExpression(node))
    for (const to of ["true", "false"]) yield ["condition", node.condition, to];
  if (ts.isForStatement(node) && node.condition) yield ["condition", node.condition, "false"];
  const isAssignment =
    ts.isExpressionStatement(node) &&
    ts.isBinaryExpression(node.expression) &&
    node.expression.operatorToken.kind >= SyntaxKind.FirstAssignment &&
    node.expression.operatorToken.kind <= SyntaxKind.LastAssignment;
  const isCall =
    ts.isExpressionStatement(node) &&
    /^(Call|Await|Delete|Void|PostfixUnary|PrefixUnary)Expression$/.test(SyntaxKind[node.expression.kind]) &&
    !text(node).startsWith("super(");
  if (isAssignment || isCall || ts.isThrowStatement(node) || ts.isBreakOrContinueStatement(node))
    yield ["statement", node, ";"];
  if (ts.isReturnStatement(node) && node.expression) yield ["result", node.expression, "undefined"];
}

function* walk(node, file) {
  if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
  for (const [kind, { pos, end }, text] of changesOf(node, (x) => x.getText(file))) {
    const start = ts.skipTrivia(file.text, pos);
    yield { kind, start, end, text, line: file.getLineAndCharacterOfPosition(start).line + 1 };
  }
  if (ts.isThrowStatement(node) || ts.isTemplateExpression(node)) return;
  const children = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* walk(child, file);
}

const found = {};
for (const path of process.argv.slice(2)) {
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  found[path] = [...walk(file, file)];
}
process.stdout.write(JSON.stringify(found));
