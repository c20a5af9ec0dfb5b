/** The value of an answer as a tree, its calls, and the sources of its quotes. */
(function (Playground) {
"use strict";

const { html, useState } = htmPreact;
const { plain, percent, count } = Playground.text;
const DEEPEST = 40; // levels drawn as a tree; what is below is shown as text

const isContainer = (value) => typeof value === "object" && value !== null;

function typeOf(value) {
	if (value === null) return "null";
	if (Array.isArray(value)) return "array";
	return Number.isInteger(value) ? "integer" : typeof value;
}

/** Sets a member of any name, `__proto__` too. */
function put(place, name, value) {
	Object.defineProperty(place, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns `root` with a value behind the keys and positions `steps`; makes the objects and arrays on the way there. */
Playground.setAt = function (root, steps, value) {
	const holder = { root };
	let [place, name] = [holder, "root"];
	for (const step of steps) {
		if (!Object.hasOwn(place, name) || !isContainer(place[name])) put(place, name, typeof step === "number" ? [] : {});
		[place, name] = [place[name], step];
	}
	put(place, name, value);
	return holder.root;
};

/** The JSON Pointer of the arguments of a call, or of the content, in an answer with tools. */
Playground.rootOf = function ({ request: { tools } }, call) {
	if (typeof call === "number") return `/calls/${call}/arguments`;
	return tools?.length > 0 ? "/content" : "";
};

function Confidence({ field: { probability, alternatives = [] } }) {
	return html`<details class="confidence">
		<summary aria-label=${`${percent(probability)}, ${count(alternatives.length, "alternative")}`}>
			<${Playground.Bar} share=${probability} /> ${percent(probability)}
		</summary>
		${alternatives.map((other) => html`<p><code>${plain(JSON.stringify(other.value))}</code> ${percent(other.probability)}</p>`)}
	</details>`;
}

function Line({ name, value, path, tools }) {
	const type = typeOf(value);
	const quote = tools.quotes.find((candidate) => candidate.path === path);
	const field = tools.fields[path];
	return html`<div class="line" data-path=${path}>
		${name === null ? null : html`<b>${plain(name)}</b>`}
		<small>${type === "array" ? `array, ${count(value.length, "item")}` : type}</small>
		${isContainer(value) ? null : html`<code class=${type}>${plain(JSON.stringify(value))}</code>`}
		${tools.growing.has(path) ? html`<small class="growing">being written</small>` : null}
		${field && typeof field.probability === "number" ? html`<${Confidence} field=${field} />` : null}
		${quote ? html`<button class="link" aria-label=${`Source of ${plain(path)}`} onClick=${() => tools.onQuote(quote)}>source</button>` : null}
	</div>`;
}

function Node({ name = null, value, path, depth = 0, tools }) {
	const members = isContainer(value) ? Object.entries(value) : [];
	const pathOf = (key) => `${path}/${key.replace(/~/g, "~0").replace(/\//g, "~1")}`;
	const node = ([key, member]) =>
		html`<${Node} key=${key} name=${key} value=${member} path=${pathOf(key)} depth=${depth + 1} tools=${tools} />`;
	return html`<li>
		<${Line} name=${name} value=${value} path=${path} tools=${tools} />
		${members.length > 0 && depth < DEEPEST ? html`<ul>${members.map(node)}</ul>` : null}
		${members.length > 0 && depth >= DEEPEST ? html`<pre>${plain(JSON.stringify(value))}</pre>` : null}
	</li>`;
}

function Tree(root) {
	return html`<ul class="tree"><${Node} ...${root} /></ul>`;
}

/** The text around a quote in the message that has it. The numbers of a quote count characters. */
function Quote({ quote: { path, text, source, begin, end }, messages = [] }) {
	const users = messages.filter(({ role }) => role === "user").map(({ content }) => Array.from(content));
	const found = users.find((characters) => characters.slice(begin, end).join("") === text);
	const around = (from, to) => (found ? plain(found.slice(Math.max(0, from), to).join("")) : "");
	return html`<div class="quote" role="status">
		<code>${plain(path)}</code> is quoted from <b>${plain(source || "prompt")}</b>, characters ${begin} to ${end}:
		<blockquote>${around(begin - 200, begin)}<mark>${plain(text)}</mark>${around(end, end + 200)}</blockquote>
	</div>`;
}

function Call({ call, partial, ...root }) {
	const value = call.arguments ?? partial;
	return html`<section class="call">
		<h3>Call of <code>${plain(call.name)}</code></h3>
		${isContainer(value) ? html`<${Tree} value=${value} ...${root} />` : html`<pre>${plain(call.input || call.text || "")}</pre>`}
	</section>`;
}

function Whole({ run, ...root }) {
	const value = run.done ? run.done.value : run.partial ?? run.text;
	return value === run.text ? html`<pre>${plain(value)}</pre>` : html`<${Tree} value=${value} ...${root} />`;
}

Playground.ValueView = function ({ run }) {
	const [shownQuote, onQuote] = useState(null);
	const { quotes, fields, calls, has_value: hasValue } = run.done || {};
	const tools = { fields: fields || {}, growing: run.growing || new Set(), quotes: quotes || [], onQuote };
	const shownCalls = calls?.length > 0 ? calls : run.calls || [];
	const isWhole = run.done ? hasValue : shownCalls.length === 0;
	return html`<div>
		${fields ? html`<p class="quiet">Bars show the probability that the model gives to each value.</p>` : null}
		${isWhole ? html`<${Whole} run=${run} path=${Playground.rootOf(run)} tools=${tools} />` : null}
		${tools.quotes.includes(shownQuote) ? html`<${Quote} quote=${shownQuote} messages=${run.request.messages} />` : null}
		${shownCalls.map((call, index) => html`<${Call} call=${call} partial=${run.callValues?.[index]}
			path=${Playground.rootOf(run, index)} tools=${tools} />`)}
		${!isWhole && shownCalls.length === 0 ? html`<p class="quiet">This answer has no value.</p>` : null}
	</div>`;
};
})((window.Playground ??= {}));
