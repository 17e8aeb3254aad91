/** Names of hosts and their addresses, for the checks of addresses: a page cannot ask. */

import { lookup } from "node:dns/promises";

/** The addresses of a name; none of one that nobody knows, as nothing will come from it. */
export async function addressesOf(name: string): Promise<readonly string[]> {
  const addresses = await lookup(name, { all: true }).catch(() => []);
  return addresses.map(({ address }) => address);
}
