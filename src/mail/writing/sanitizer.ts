/** Loads the library with the first text that is written: with its parser of styles it would be a twentieth of a start. */
export function sanitizer(): typeof import("sanitize-html") {
  return require("sanitize-html");
}
