/** polygrad runs in the page; where the page is rendered on the server, Node loads the package as it is. */
export default { serverExternalPackages: ["polygrad"] };
