/** The tab Export: the request as code and as a link, without the key, and the run as one HTML file. */
(function (Playground) {
"use strict";

const { html, useState } = htmPreact;
const { store, api, Select } = Playground;
const SAMPLING = ["max_tokens", "temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty"];
const OURS = ["top_k", "min_p", "repeat_penalty", "draft", "show_schema", "grammar", "regex"]; // not in OpenAI's API
const CONSTANTS = { true: "True", false: "False", null: "None" };
const { plain, UNSEEN, hex } = Playground.text;

function json(value, indent) {
	const escape = (character) => character.replace(/[^]/g, (unit) => `\\u${hex(unit, 4)}`);
	return JSON.stringify(value, null, indent).replace(UNSEEN, escape);
}

/** Returns a JSON value as a Python literal. */
function python(value) {
	const literal = JSON.stringify(value, null, 4).replace(UNSEEN, (character) => `\\U${hex(character, 8)}`);
	return literal.replace(/"(?:[^"\\]|\\.)*"|true|false|null/g, (part) => CONSTANTS[part] || part).replace(/\n/g, "\n    ");
}

/** Returns a text as a Python literal; one with several lines stays readable, where it can. */
function pythonText(text) {
	const isReadable = text.includes("\n") && !/"""|[\\"]$/.test(text) && text.search(UNSEEN) < 0;
	return isReadable ? `r"""${text}"""` : python(text);
}

function pick(request, names) {
	return Object.fromEntries(names.filter((name) => request[name] !== undefined).map((name) => [name, request[name]]));
}

/** Returns the JSON Schema of a text; `schema` is that of a short text. */
function schemaOf(text, schema) {
	try {
		return schema || JSON.parse(text);
	} catch {
		throw new Error("The schema is not valid, or not checked yet.");
	}
}

const callOf = (head, fields) => `${head}(\n${fields.map((field) => `    ${field},\n`).join("")})\n`;
const fieldsOf = (options) => Object.entries(options).map(([name, value]) => `${name}=${python(value)}`);

function schemaInPython({ kind, text }, isShort) {
	if (kind === "json_schema" && !isShort) return python(schemaOf(text));
	const source = { lark: "constrain.Lark", gbnf: "constrain.Gbnf", regex: "constrain.Regex" }[kind];
	return source ? `${source}(${pythonText(text)})` : pythonText(text);
}

function pythonSnippet(request, schema) {
	const { model, messages, language } = request;
	const isOne = messages.length === 1 && messages[0].role === "user";
	const options = { ...language?.policies, ...pick(request, [...SAMPLING, ...OURS, "tools", "tool_choice"]) };
	const form = language ? [`schema=${schemaInPython(language, Boolean(schema))}`] : [];
	const fields = ["model", isOne ? pythonText(messages[0].content) : python(messages), ...form, ...fieldsOf(options)];
	const isDemo = store.state.server?.models.find(({ id }) => id === model)?.is_demo;
	const file = isDemo ? "Model()  # the demo model" : `Model("model.gguf")  # the file of ${json(model)}`;
	const head = `import constrain\n\nmodel = constrain.${file}\n`;
	return `${callOf(`${head}answer = constrain.generate`, fields)}print(answer)\n`;
}

/** Returns the fields of a chat completion that stand for a language. `schema` is that of a short text. */
function formatOf({ language, tools }, schema) {
	if (!language) return {};
	const { kind, text } = language;
	if (kind === "json_schema" || kind === "short") {
		return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: schemaOf(text, schema) } } };
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

function curlSnippet(request, schema) {
	const body = json(bodyOf(request, schema), 2).replace(/'/g, "'\\''");
	const headers = '-H "Content-Type: application/json" -H "Authorization: Bearer $API_KEY"';
	return `${missing(request)}curl ${location.origin}/v1/chat/completions \\\n  ${headers} \\\n  -d '${body}'\n`;
}

function openaiSnippet(request, schema) {
	const body = bodyOf(request, schema);
	const extra = pick(body, OURS);
	for (const name of OURS) delete body[name];
	const fields = fieldsOf(body);
	if (Object.keys(extra).length > 0) fields.push(`extra_body=${python(extra)}`);
	const client = `OpenAI(base_url="${location.origin}/v1", api_key=os.environ.get("API_KEY", "any"))`;
	const head = `${missing(request)}import os\n\nfrom openai import OpenAI\n\nclient = ${client}\n`;
	const call = callOf(`${head}completion = client.chat.completions.create`, fields);
	return `${call}print(completion.choices[0].message${body.tools ? "" : ".content"})\n`;
}

const SNIPPETS = { Python: pythonSnippet, curl: curlSnippet, "openai client": openaiSnippet };

async function copy(text) {
	if (!navigator.clipboard) throw new Error("The browser copies only from pages of HTTPS or of this machine.");
	await navigator.clipboard.writeText(text);
}

async function copyLink() {
	const link = store.linkTo(store.buildRequest());
	history.replaceState(null, "", link);
	await copy(link);
}

/** Saves a run in the template of the server, which has the scripts that show it. No text of the run can be markup there. */
async function exportRun({ request, prompt, tokens, done, reasoning }) {
	const template = await (await fetch("playground/export.html")).text();
	const escape = (character) => `\\u00${character.charCodeAt(0).toString(16)}`;
	const data = JSON.stringify({ request, prompt, tokens, done, reasoning }).replace(/[<>&]/g, escape);
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([template.replace("{{data}}", () => data)], { type: "text/html" }));
	link.download = "constrain-answer.html";
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function Action({ id, words, done, act, disabled }) {
	const [result, setResult] = useState("");
	const click = () => act().then(() => setResult(done), (error) => setResult(error.message));
	return html`<p class="row"><button id=${id} disabled=${disabled} onClick=${click}>${words}</button><span role="status" id=${`${id}-result`}>${plain(result)}</span></p>`;
}

/** Returns the code of the request, or what is wrong with it. */
function snippetOf(name, schema) {
	try {
		return { text: SNIPPETS[name](store.buildRequest(), schema) };
	} catch ({ message }) {
		return { text: message, isWrong: true };
	}
}

Playground.TakeTab = function () {
	const { request: { model, language }, run } = store.useStore();
	const [name, setName] = useState("Python");
	const { answer, isOld } = api.useAnswer("/check", language && { model, language }, 0); // has the schema of a short text
	const { text, isWrong } = snippetOf(name, isOld ? null : answer?.schema);
	return html`<div class="row">
			<${Select} id="snippet-kind" label="Request as" value=${name} choices=${Object.keys(SNIPPETS)} onPick=${setName} />
			<${Action} id="copy" words="Copy" done="Copied." disabled=${isWrong} act=${() => copy(text)} />
		</div>
		<pre id="snippet" class="box" tabindex="0" role="region" aria-label="Code">${text}</pre>
		<${Action} id="copy-link" words="Copy a link to this request" done="Copied. The address of this page holds it, too." act=${copyLink} />
		<${Action} id="export" words="Save the answer as one HTML file" done="Saved." disabled=${!run?.done} act=${() => exportRun(run)} />`;
};
})((window.Playground ??= {}));
