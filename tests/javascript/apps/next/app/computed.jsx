"use client";

import { useEffect, useState } from "react";

import { main } from "../use_polygrad.mjs";

export default function Computed() {
  const [seen, setSeen] = useState("");
  useEffect(() => {
    main("/polygrad").then(
      (values) => setSeen(JSON.stringify(values)),
      (error) => setSeen(String(error)),
    );
  }, []);
  return <pre id="out">{seen}</pre>;
}
