// Runs in the browser, on the page /docs.
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

const list = document.querySelector("#operations");
const button = list.querySelector("button");
list.querySelector("#try").hidden = false;
button.addEventListener("click", open);
addEventListener("hashchange", openNamed);

let opening = false;

/** An address such as #/Inboxes/postInboxes names one operation. */
function openNamed() {
  if (location.hash.startsWith("#/")) void open();
}

/** Puts the interactive reference of one tag, or of all, in the place of the list. */
async function open() {
  if (opening) return;
  opening = true;
  button.disabled = true;
  list.ariaBusy = "true";
  const { bundle, style } = list.dataset;
  try {
    const [answer] = await Promise.all([
      fetch("/openapi.json"),
      added("script", { src: bundle }),
      added("link", { rel: "stylesheet", href: style }),
    ]);
    const all = await answer.json();
    const tag = decodeURIComponent(location.hash.split("/")[1] ?? "");
    show(all.tags.some(({ name }) => name === tag) ? ofTag(all, tag) : all);
  } catch {
    opening = false;
    button.disabled = false;
    list.ariaBusy = "false";
    list.querySelector("[role=alert]").textContent =
      "The reference could not be loaded. Look whether the server can be reached, and try again.";
  }
}

function added(tag, attributes) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  });
}

/** The part of the document with the operations of one tag; all of it keeps a browser busy for many seconds. */
function ofTag(all, tag) {
  const paths = {};
  for (const [path, operations] of Object.entries(all.paths))
    for (const [method, operation] of Object.entries(operations))
      if (operation.tags.includes(tag)) paths[path] = { ...paths[path], [method]: operation };
  const kept = {
    ...all,
    tags: [{ name: tag }],
    paths,
    components: { securitySchemes: all.components.securitySchemes },
  };
  const wanted = [kept.paths];
  for (let part = wanted.pop(); part; part = wanted.pop()) {
    const { $ref } = part;
    if (typeof $ref === "string") {
      const [, , kind, name] = $ref.split("/");
      kept.components[kind] ??= {};
      if (!(name in kept.components[kind]))
        wanted.push((kept.components[kind][name] = all.components[kind][name]));
    }
    for (const inner of Object.values(part))
      if (typeof inner === "object" && inner !== null) wanted.push(inner);
  }
  return kept;
}

function show(spec) {
  const place = document.createElement("div");
  place.id = "operations";
  const back = Object.assign(document.createElement("p"), { className: "text begin" });
  back.append(
    Object.assign(document.createElement("a"), { href: "/docs", textContent: "The list of all operations" }),
  );
  list.replaceWith(back, place);
  // Set by swagger-ui-bundle.js.
  SwaggerUIBundle({
    spec,
    domNode: place,
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
}

openNamed();
