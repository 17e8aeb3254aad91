import Computed from "./computed";

export default function Page() {
  return <Computed />;
}
