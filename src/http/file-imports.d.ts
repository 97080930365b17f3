declare module "*/swagger-ui-bundle.js" {
  const path: string;
  export default path;
}
declare module "*/docs-init.js" {
  const path: string;
  export default path;
}
declare module "*.css" {
  const path: string;
  export default path;
}
