import eslint from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  {
    ignores: [
      "**/node_modules",
      "**/dist",
      "**/build",
      ".venv",
      "bench/.venv",
      "examples",
      "polygrad",
      "tests/javascript/consumer.ts",
      "web/playground/programs",
    ],
  },
  eslint.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A number in a message is a number.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["**/*.test.ts"],
    rules: {
      "@typescript-eslint/no-floating-promises": [
        "error",
        { allowForKnownSafeCalls: [{ from: "package", package: "node:test", name: "test" }] },
      ],
    },
  },
  {
    // It runs in a page, in a worker and in Node, so it may use what all three have and nothing else.
    files: ["wasm_runtime/src/**/*.ts", "loader/src/**/*.ts"],
    rules: {
      "no-restricted-imports": ["error", { patterns: ["node:*", "../../node/*", "../../web/*"] }],
      "no-restricted-globals": [
        "error",
        ...[
          "window",
          "document",
          "self",
          "location",
          "navigator",
          "localStorage",
          "process",
          "Buffer",
          "require",
        ],
      ],
    },
  },
  {
    files: ["wasm_runtime/src/**/*.ts"],
    rules: {
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            "node:*",
            "pyodide",
            "pyodide/*",
            "**/loader/*",
            "**/loader/src/*",
            "**/node/src/*",
            "**/web/src/*",
          ],
        },
      ],
    },
  },
  {
    files: ["**/*.mjs", "*.js", "tests/**/*.js"],
    languageOptions: {
      globals: Object.fromEntries(
        [
          ...[
            "AbortController",
            "TextDecoder",
            "AbortSignal",
            "Buffer",
            "TextEncoder",
            "URL",
            "WebAssembly",
            "console",
            "fetch",
            "globalThis",
            "performance",
            "process",
          ],
          ...["clearInterval", "clearTimeout", "setInterval", "setTimeout"],
          ...[
            "Blob",
            "OffscreenCanvas",
            "PerformanceObserver",
            "ReadableStream",
            "Worker",
            "atob",
            "caches",
            "createImageBitmap",
            "crypto",
            "devicePixelRatio",
            "document",
            "getComputedStyle",
            "indexedDB",
            "navigator",
            "postMessage",
            "window",
          ],
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
);
