import assert from "node:assert/strict";
import { test } from "node:test";

import { renderTemplate } from "../src/hub";

const render = (source: string, variables: object = {}): string =>
  renderTemplate(source, JSON.stringify(variables));

test("templates compare, add and strip as Python does", () => {
  for (const [source, text] of [
    ["{{ [1, {'a': 2}] == [1.0, {'a': 2}] }}", "true"],
    ["{{ {'a': 1} != {'a': 1} }}", "false"],
    ["{{ 'a' + 'b' }}{{ 1 + 2 }}", "ab3"],
    ["{{ 'xxaxx'.strip('x') }}{{ 'xxaxx'.lstrip('x') }}{{ 'xxaxx'.rstrip('x') }}", "aaxxxxa"],
    ["[{{ ' \\u001c a\\ufeff ' | trim }}]", "[a\ufeff]"],
  ] as const) {
    assert.equal(render(source), text);
  }
  assert.throws(() => render("{{ 1 + 'a' }}"), /a sum of IntegerValue and StringValue/);
});

test("what a template makes is bounded, what it looks at is not", () => {
  const text = "x".repeat(1_000_000);
  assert.equal(render("{% for i in range(100) %}{{ text | length }}{% endfor %}", { text }).length, 700);
  assert.throws(
    () => render("{{ text.replace('x', 'yyyyyyyyy') }}", { text }),
    /a value of more than 8000000 characters/,
  );
  assert.throws(
    () => render("{% for i in range(70) %}{{ (text + '') | length }}{% endfor %}", { text }),
    /values of more than 64000000 characters/,
  );
  assert.throws(() => render("{{ range(100001) }}"), /an argument above 100000/);
});
