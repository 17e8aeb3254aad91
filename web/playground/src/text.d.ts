/** Plain text, bundled as it is. */
declare module "*.txt" {
  const text: string;
  export default text;
}
