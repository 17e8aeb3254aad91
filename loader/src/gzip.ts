/** Archives that come as gzip files, where no server compresses them. */

type Bytes = Uint8Array<ArrayBuffer>;

/** What is in a gzip file; other bytes as they are, since some servers have browsers decompress such a file. */
export async function decompressed(bytes: Bytes): Promise<Bytes> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
