/**
 * Which addresses files may come from. The rules are those of `fetch` in Python (polygrad/tensor/core/downloads.py): nothing
 * but https:, unless the file's digest is known, and nothing that a public address leads to in a private network.
 */

import { FetchError } from "./errors";

/** Networks of one machine or of a household or a firm: the first bits of IPv4 addresses. */
const PRIVATE_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "240.0.0.0/4",
] as const;

/** Names that no public server has. */
const PRIVATE_NAME = /(^|\.)(localhost|local|internal|home\.arpa)\.?$/i;

/** What a host adds. */
export const network: {
  /** The addresses of a name, where the host tells them; none of a name that is not known. */
  addressesOf?: (name: string) => Promise<readonly string[]>;
} = {};

const bitsOf = (ipv4: string): number => ipv4.split(".").reduce((bits, part) => bits * 256 + Number(part), 0);

function isPrivateIPv4(address: string): boolean {
  return PRIVATE_IPV4.some((range) => {
    const [start = "", length = ""] = range.split("/");
    const size = 2 ** (32 - Number(length));
    return Math.floor(bitsOf(address) / size) === Math.floor(bitsOf(start) / size);
  });
}

/** Of an IPv6 address in its shortest form, as URL writes it. */
function isPrivateIPv6(address: string): boolean {
  const [, high = "", low = ""] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(address) ?? [];
  if (high !== "") {
    const [a, b] = [parseInt(high, 16), parseInt(low, 16)];
    return isPrivateIPv4([a >> 8, a & 255, b >> 8, b & 255].join("."));
  }
  return /^(::1?$|f[cd]|fe[89ab])/.test(address);
}

/** Whether an address of IPv4, or of IPv6 with or without brackets, is one of a private network; undefined for a name. */
function isPrivateAddress(host: string): boolean | undefined {
  if (/^\d+(\.\d+){3}$/.test(host)) return isPrivateIPv4(host);
  if (!host.includes(":")) return undefined;
  const plain = host.replace(/^\[|\]$|%.*$/g, "");
  return isPrivateIPv6(new URL(`http://[${plain}]`).hostname.slice(1, -1));
}

/** Whether a host has an address of this machine or of a private network, as far as that is known here. */
export async function isPrivate(host: string): Promise<boolean> {
  const known = isPrivateAddress(host);
  if (known !== undefined) return known;
  if (PRIVATE_NAME.test(host)) return true;
  return ((await network.addressesOf?.(host)) ?? []).some((address) => isPrivateAddress(address) === true);
}

/** Rejects with FetchError for an address with http: of another machine, unless the file's digest is known. */
export async function checkAddress(address: string, what: string, sha256: string | undefined): Promise<void> {
  const { protocol, hostname, origin } = new URL(address);
  const { location } = globalThis as { location?: { origin: string } };
  if (protocol !== "http:" || sha256 !== undefined || origin === location?.origin) return;
  if (await isPrivate(hostname)) return;
  throw new FetchError(
    `${what}: expected https at ${address}, got http, by which anybody on the way may change the file: use https, or ` +
      "pass its sha256",
    { url: address },
  );
}

/** Rejects with FetchError for a redirection to another scheme, or from a public address to a private one. */
export async function checkRedirection(url: string, target: string, what: string): Promise<void> {
  const [from, to] = [new URL(url), new URL(target)];
  if (to.protocol !== "https:" && to.protocol !== from.protocol) {
    throw new FetchError(`${what}: the server of ${url} redirects to ${target}, which is not https`, { url });
  }
  if (to.hostname === from.hostname || !(await isPrivate(to.hostname)) || (await isPrivate(from.hostname)))
    return;
  throw new FetchError(
    `${what}: the server of ${url} redirects to ${target}, an address of a private network`,
    { url },
  );
}
