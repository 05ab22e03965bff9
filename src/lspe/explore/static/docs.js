// The OpenAPI description of this server as a page, without anything from elsewhere.

import { get } from "./api.js";
import { startTheme } from "./theme.js";

function make(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function resolver(description) {
  return (schema) => {
    const path = schema?.$ref?.slice(2).split("/");
    return path ? path.reduce((part, key) => part[key], description) : schema;
  };
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.type ?? "anything";
}

function limitsOf(schema) {
  const limits = [];
  if (schema.minimum !== undefined) limits.push(`from ${schema.minimum}`);
  if (schema.maximum !== undefined) limits.push(`to ${schema.maximum}`);
  if (schema.maxLength !== undefined) limits.push(`at most ${schema.maxLength} characters`);
  if (schema.default !== undefined) limits.push(`default ${JSON.stringify(schema.default)}`);
  return limits.join(", ");
}

function table(schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    make("tr", {},
      make("td", {}, make("code", {}, name), required.has(name) ? "" : make("span", { className: "hint" }, " optional")),
      make("td", {}, typeOf(field)),
      make("td", {}, [field.description, limitsOf(field)].filter(Boolean).join(" · ")),
    ));
  const head = make("tr", {}, ...["field", "type", "meaning"].map((text) => make("th", { scope: "col" }, text)));
  return make("div", { className: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function example(schema) {
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => schema.required?.includes(name));
  return JSON.stringify(Object.fromEntries(fields.map(([name, field]) => [name, field.examples?.[0] ?? field.default ?? ""])));
}

function operation(path, method, what, resolve) {
  const asked = resolve(what.requestBody?.content["application/json"].schema);
  const answered = what.responses["200"].content?.["application/json"].schema;
  const list = answered?.type === "array";
  const answer = resolve(list ? answered.items : answered);
  const body = asked ? ` -H 'Content-Type: application/json' -d '${example(asked)}'` : "";
  const section = make("section", { className: "card operation" },
    make("h2", {}, make("span", { className: "method" }, method.toUpperCase()), ` ${path}`),
    make("p", {}, what.description ?? what.summary ?? ""),
    make("pre", { tabIndex: 0 }, `curl ${location.origin}${path}${body}`),
  );
  if (asked) section.append(make("h3", {}, "Question"), table(asked));
  if (answer?.properties) section.append(make("h3", {}, list ? "Answer, a list of" : "Answer"), table(answer));
  return section;
}

function parts(description, resolve) {
  const shown = ["Node", "Edge", "EncodedGraph", "Verdict", "RunAbout", "Value", "Problem"];
  return shown.filter((name) => description.components.schemas[name]).map((name) => {
    const schema = resolve({ $ref: `#/components/schemas/${name}` });
    return make("section", { className: "card operation" }, make("h2", {}, name), make("p", {}, schema.description ?? ""), table(schema));
  });
}

startTheme(() => {});
const place = document.getElementById("operations");
try {
  const description = await get("/openapi.json");
  const resolve = resolver(description);
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, what]) => operation(path, method, what, resolve)));
  place.replaceChildren(...operations, make("h2", { className: "divider" }, "Parts of the answers"), ...parts(description, resolve));
} catch (error) {
  place.replaceChildren(make("p", { className: "problem", role: "alert" }, error.message));
}
