// Runs in the browser, on the page /docs.
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

// oxlint-disable-next-line no-undef -- set by swagger-ui-bundle.js, which the page loads first
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#operations",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  requestSnippetsEnabled: true,
  // A key stays in this page: the next person at this browser does not get it.
  persistAuthorization: false,
  // It would send the address of this server to a service elsewhere.
  validatorUrl: null,
});
