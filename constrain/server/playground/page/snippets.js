/**
 * The request of the form as code: Python with constrain, curl, and Python with OpenAI's client. Used by the tab Take
 * along. The key is never part of it.
 */
(function (Playground) {
"use strict";

const SAMPLING = ["max_tokens", "temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty"];
const OURS = ["top_k", "min_p", "repeat_penalty", "draft", "show_schema", "grammar", "regex"]; // not in OpenAI's API
const UNSEEN = /[\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e0fff}]/gu;
const CONSTANTS = { true: "True", false: "False", null: "None" };
const hex = (code, digits) => code.toString(16).padStart(digits, "0");

/** Returns a JSON text in which every character can be seen. */
function json(value, indent) {
  const escape = (character) => character.replace(/[^]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`);
  return JSON.stringify(value, null, indent).replace(UNSEEN, escape);
}

/** Returns a JSON value as a Python literal. */
function python(value) {
  const escape = (character) => {
    const code = character.codePointAt(0);
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
  };
  const literal = JSON.stringify(value, null, 4).replace(UNSEEN, escape);
  return literal.replace(/"(?:[^"\\]|\\.)*"|true|false|null/g, (part) => CONSTANTS[part] || part).replace(/\n/g, "\n    ");
}

/** Returns a text as a Python literal; one with several lines stays readable, where it can. */
function pythonText(text) {
  const isReadable = text.includes("\n") && !/"""|[\\"]$|[\0-\x09\x0b-\x1f]/.test(text) && text.search(UNSEEN) < 0;
  return isReadable ? `r"""${text}"""` : python(text);
}

function pick(request, names) {
  return Object.fromEntries(names.filter((name) => request[name] !== undefined).map((name) => [name, request[name]]));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const callOf = (head, fields) => `${head}(\n${fields.map((field) => `    ${field},\n`).join("")})\n`;
const fieldsOf = (options) => Object.entries(options).map(([name, value]) => `${name}=${python(value)}`);

function schemaInPython({ kind, text }) {
  const schema = kind === "json_schema" ? parsed(text) : null;
  if (schema !== null) return python(schema);
  const source = { lark: "constrain.Lark", gbnf: "constrain.Gbnf", regex: "constrain.Regex" }[kind] || "";
  return `${source}(${pythonText(text)})`;
}

/** Python that runs the model in its own process. */
function pythonSnippet(request) {
  const { model, messages, language } = request;
  const isOne = messages.length === 1 && messages[0].role === "user";
  const options = { ...language?.policies, ...pick(request, [...SAMPLING, ...OURS, "tools", "tool_choice"]) };
  const schema = language ? [`schema=${schemaInPython(language)}`] : [];
  const fields = ["model", isOne ? pythonText(messages[0].content) : python(messages), ...schema, ...fieldsOf(options)];
  const head = `import constrain\n\nmodel = constrain.Model("model.gguf")  # the file of ${json(model)}\n`;
  return `${callOf(`${head}answer = constrain.generate`, fields)}print(answer)\n`;
}

/** Returns the fields of a chat completion that stand for a language. `schema` is that of a short text. */
function formatOf({ language, tools }, schema) {
  if (!language) return {};
  const { kind, text } = language;
  if (kind === "json_schema" || kind === "short") {
    const found = (kind === "short" ? schema : parsed(text)) || {};
    return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: found } } };
  }
  if (kind === "regex" && tools) return { regex: text };
  if (kind === "gbnf" || tools) return { grammar: text };
  const format = { type: "grammar", grammar: { syntax: kind, definition: text } };
  const type = "custom";
  return { tools: [{ type, custom: { name: "answer", format } }], tool_choice: { type, custom: { name: "answer" } } };
}

function bodyOf(request, schema) {
  const main = pick(request, ["model", "messages", "tools", "tool_choice"]);
  return { ...main, ...formatOf(request, schema), ...pick(request, [...SAMPLING, ...OURS]) };
}

/** What a chat completion cannot say, as a comment. */
function missing({ language }) {
  const names = Object.keys(language?.policies || {});
  return names.length > 0 ? `# Policies are options of the Python package only: ${names.join(", ")}\n` : "";
}

function curlSnippet(request, schema, hasKey) {
  const body = json(bodyOf(request, schema), 2).replace(/'/g, "'\\''");
  const key = hasKey ? ' \\\n  -H "Authorization: Bearer $API_KEY"' : "";
  const head = `curl ${location.origin}/v1/chat/completions \\\n  -H "Content-Type: application/json"${key}`;
  return `${missing(request)}${head} \\\n  -d '${body}'\n`;
}

function openaiSnippet(request, schema, hasKey) {
  const body = bodyOf(request, schema);
  const extra = pick(body, OURS);
  for (const name of OURS) delete body[name];
  const fields = fieldsOf(body);
  if (Object.keys(extra).length > 0) fields.push(`extra_body=${python(extra)}`);
  const client = `OpenAI(base_url="${location.origin}/v1", api_key=${hasKey ? 'os.environ["API_KEY"]' : '"any"'})`;
  const head = `${hasKey ? "import os\n\n" : ""}from openai import OpenAI\n\nclient = ${client}\n`;
  const call = callOf(`${head}completion = client.chat.completions.create`, fields);
  return `${missing(request)}${call}print(completion.choices[0].message${body.tools ? "" : ".content"})\n`;
}

Playground.SNIPPETS = { Python: pythonSnippet, curl: curlSnippet, "openai client": openaiSnippet };
})((window.Playground ??= {}));
