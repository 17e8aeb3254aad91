import Computed from "./computed";

export default function Page() {
  return <Computed numbers={[1, 2, 3]} />;
}
