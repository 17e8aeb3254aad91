import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { main } from "./use_polygrad.mjs";

function App() {
  const [seen, setSeen] = useState("");
  useEffect(() => {
    main("/polygrad").then(
      (values) => setSeen(JSON.stringify(values)),
      (error) => setSeen(String(error)),
    );
  }, []);
  return <pre id="out">{seen}</pre>;
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
