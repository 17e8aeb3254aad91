import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import Sum from "./sum.jsx";

const NUMBERS = [1, 2, 3];

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Sum numbers={NUMBERS} />
  </StrictMode>,
);
