/**
 * The JavaScript API, case by case, for every host: `cases[name](pg, host)` gives plain data, which test_api.py compares
 * with what Python computes. `host`: { worker, url, folder, files } (url: where a page's files are; a path in Node).
 */

import { dataCases } from "./data_cases.mjs";
import { fileCases } from "./file_cases.mjs";
import { modelCases } from "./model_cases.mjs";
import { sessionCases } from "./session_cases.mjs";
import { tensorCases } from "./tensor_cases.mjs";
import { trainingCases } from "./training_cases.mjs";
import { transformCases } from "./transform_cases.mjs";

export const cases = {
  ...dataCases,
  ...fileCases,
  ...trainingCases,
  ...transformCases,
  ...tensorCases,
  ...sessionCases,
  ...modelCases,
};
