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
declare module "*.txt" {
  const text: string;
  export default text;
}
declare module "*.py" {
  const text: string;
  export default text;
}
declare module "*.go" {
  const text: string;
  export default text;
}
declare module "*.php" {
  const text: string;
  export default text;
}
declare module "*.sh" {
  const text: string;
  export default text;
}
