/** The form: language, checked while it is written, messages, tools, sampling, and buttons. */
(function (Playground) {
"use strict";

const { html, useMemo, useState } = htmPreact;
const { store, api, runs, Editor, Select, Tick, NumberField, Fact, goTo } = Playground;
const { plain, count, number } = Playground.text;
const WAIT = 300; // milliseconds after the last key

const KINDS = {
	json_schema: "JSON Schema",
	short: "Short syntax",
	lark: "Lark grammar",
	gbnf: "GBNF grammar",
	regex: "Regular expression",
	none: "None: free text",
};

/** Checks the language of the form. Returns `{name, errors, findings, ...}`; `name` says how far the check is. */
function useCheck({ server, request: { model, language, max_tokens } }) {
	const { answer, error, isOld } = api.useAnswer("/check", server && language && { model, language }, WAIT);
	const empty = { errors: [], findings: [], facts: [], max_tokens };
	if (!language) return { ...empty, name: "none" };
	if (error && !isOld) return { ...empty, name: "failed", errors: [{ message: error }] };
	return { ...empty, ...answer, name: isOld || !answer ? "checking" : answer.ok ? "valid" : "invalid" };
}

const WORDS = {
	none: () => "Nothing is enforced",
	checking: () => "Checking…",
	failed: () => "Not checked",
	invalid: ({ errors }) => count(errors.length, "error"),
	valid: ({ least_tokens: least, typical_tokens: typical, max_tokens: most }) =>
		`Valid${least ? ` · at least ${count(least, "token")}` : ""}${least > most ? ", more than max tokens" : ""}${typical ? ` · typically ${number(typical)}` : ""}`,
};

function Finding({ item: { kind = "error", line, column, pointer, message } }) {
	const place = `line ${line}${column ? `, column ${column}` : ""}`;
	const go = () => goTo("language-text", line, column);
	return html`<li class=${kind === "error" ? "wrong" : "finding"} data-kind=${kind}>
		${kind === "error" ? "" : `${plain(kind)}: `}
		${line ? html`<button class="link" onClick=${go}>${place}</button> ` : null}
		${pointer ? html`<code>${plain(pointer)}</code> ` : null}
		${plain(message)}
	</li>`;
}

function Policies({ known = {}, chosen = {} }) {
	const pick = (name, value) => {
		const policies = { ...chosen, [name]: value };
		if (value === known[name].default) delete policies[name];
		store.setLanguage({ policies });
	};
	const field = ([name, { default: standard, choices }]) => html`<${Select} id=${`policy-${name}`} label=${name.replace(/_/g, " ")}
		value=${chosen[name] || standard} choices=${choices} onPick=${(value) => pick(name, value)} />`;
	return html`<details id="policies">
		<summary>Policies</summary>
		<div class="grid">${Object.entries(known).map(field)}</div>
	</details>`;
}

async function loadGrammar(name) {
	try {
		const { text } = await api.ask(`/grammars/${encodeURIComponent(name)}`);
		store.setLanguage({ kind: "lark", text });
	} catch (error) {
		store.set({ error });
	}
}

function LanguageForm() {
	const state = store.useStore();
	const check = useCheck(state);
	const [grammar, setGrammar] = useState("");
	const { kind, text, policies } = state.request.language || { kind: "none" };
	const { kinds = Object.keys(KINDS), grammars = [], policies: known } = state.server || {};
	const marks = ["findings", "errors"].flatMap((name) => check[name].map(({ line }) => ({ line, kind: name })));
	const isSchema = kind === "json_schema" || kind === "short";
	return html`<section>
		<h2>Language of the answer</h2>
		<div class="row">
			<${Select} id="kind" label="Kind of language" isHidden value=${kind} onPick=${(name) => store.setLanguage({ kind: name })}
				choices=${[...new Set([...kinds, "none"])].map((name) => [name, KINDS[name] || name])} />
			<div class="row">
				<${Select} id="grammars" label="Ready grammars" isHidden value=${grammar} onPick=${setGrammar}
					choices=${[["", "Ready grammars…"], ...grammars]} />
				<button id="load-grammar" disabled=${!grammar} onClick=${() => loadGrammar(grammar)}>Load</button>
			</div>
		</div>
		${kind === "none"
			? null
			: html`<${Editor} id="language-text" label=${`Text: ${KINDS[kind] || kind}`} text=${text} marks=${marks}
					isWrong=${check.name === "invalid"} errors="check errors" rows=${kind === "short" || kind === "regex" ? 2 : 6}
					onText=${(value) => store.setLanguage({ text: value })} />`}
		<p id="check" data-state=${check.name}>${WORDS[check.name](check)}</p>
		<ul id="errors" aria-live="polite" aria-label="Errors and findings">
			${[...check.errors.map((error) => ({ ...error, kind: "error" })), ...check.findings].slice(0, 50).map((item) => html`<${Finding} item=${item} />`)}
		</ul>
		${check.facts.length > 0
			? html`<details id="facts">
					<summary>What this language accepts</summary>
					<dl class="facts wide">${check.facts.map(([name, value]) => html`<${Fact} name=${plain(name)}>${plain(value)}<//>`)}</dl>
				</details>`
			: null}
		${isSchema ? html`<${Policies} known=${known} chosen=${policies} />` : null}
	</section>`;
}

/** Changes the messages, and moves the focus to the element that goes on. */
function setMessages(messages, focus) {
	store.setRequest({ messages });
	if (focus) setTimeout(() => document.getElementById(focus).focus());
}

function Message({ message, index, messages }) {
	const change = (field) => setMessages(messages.map((each) => (each === message ? { ...message, ...field } : each)));
	const remove = () => setMessages(messages.filter((each) => each !== message), "add-message");
	return html`<div>
		<div class="row spread">
			<${Select} id=${`role-${index}`} label=${`Role of message ${index + 1}`} isHidden value=${message.role}
				choices=${store.ROLES} onPick=${(role) => change({ role })} />
			<button class="link" disabled=${messages.length === 1} aria-label=${`Remove message ${index + 1}`} onClick=${remove}>Remove</button>
		</div>
		<textarea id=${`prompt-${index}`} rows="3" aria-label=${`Text of message ${index + 1}`}
			value=${message.content} onInput=${(event) => change({ content: event.target.value })}></textarea>
	</div>`;
}

function Messages({ messages }) {
	const role = messages.at(-1)?.role === "user" ? "assistant" : "user";
	const add = () => setMessages([...messages, { role, content: "" }], `prompt-${messages.length}`);
	return html`<section>
		<h2>Messages</h2>
		${messages.map((message, index) => html`<${Message} message=${message} index=${index} messages=${messages} />`)}
		<button id="add-message" onClick=${add}>Add message</button>
	</section>`;
}

/** Returns the tools of the form, or the error in them, with its line if known. */
function readTools() {
	try {
		return { tools: store.tools() || [], marks: [] };
	} catch ({ message }) {
		const [, line] = /line (\d+)/.exec(message) || [];
		return { tools: [], message, marks: [{ kind: "errors", line: Number(line) }] };
	}
}

/** The field for `tool_choice`: a word, or a tool by its name. */
function ToolChoice({ choice = "auto", tools }) {
	const words = ["auto", "required", "none"].map((word) => [JSON.stringify(word), word]);
	const named = tools.filter((tool) => tool?.[tool.type]?.name);
	const names = named.map(({ type, [type]: { name } }) => [JSON.stringify({ type, [type]: { name } }), name]);
	return html`<${Select} id="tool-choice" label="Tool choice" choices=${[...words, ...names]} value=${JSON.stringify(choice)}
		onPick=${(value) => store.setRequest({ tool_choice: JSON.parse(value) })} />`;
}

function Tools({ text, choice }) {
	const { tools, message, marks } = useMemo(readTools, [text]);
	return html`<details id="tools">
		<summary>Tools${tools.length > 0 ? ` (${tools.length})` : ""}</summary>
		<${Editor} id="tools-text" label="Tools as a JSON array, in OpenAI's form" text=${text} marks=${marks}
			isWrong=${Boolean(message)} errors="tools-error" rows=${4} onText=${(toolsText) => store.set({ toolsText })} />
		<p id="tools-error" class="wrong" aria-live="polite">${message ? plain(message) : ""}</p>
		<p class="quiet">${'[{"type": "function", "function": {"name": …, "parameters": {…}}}, …]'}</p>
		<${ToolChoice} choice=${choice} tools=${tools} />
	</details>`;
}

function Numbers({ from, to, request }) {
	const field = ([name, range]) =>
		html`<${NumberField} id=${name} range=${range} value=${request[name]} onPick=${(value) => store.setRequest({ [name]: value })} />`;
	return html`<div class="grid">${Object.entries(store.NUMBERS).slice(from, to).map(field)}</div>`;
}

function Sampling({ request }) {
	const { stop = [], draft = false, show_schema: shows = true } = request;
	const setStop = ({ target: { value } }) => store.setRequest({ stop: value ? value.split("\n") : undefined });
	return html`<section>
		<h2>Budget and sampling</h2>
		<${Numbers} from=${0} to=${2} request=${request} />
		<details id="sampling">
			<summary>More options</summary>
			<${Numbers} from=${2} request=${request} />
			<label>Stop texts, one a line <textarea id="stop-texts" rows="2" value=${stop.join("\n")} onInput=${setStop}></textarea></label>
			<${Tick} id="draft" label="Draft first" value=${Boolean(draft)} onPick=${(value) => store.setRequest({ draft: value || undefined })} />
			<${Tick} id="show-schema" label="Show the schema to the model" value=${shows}
				onPick=${(value) => store.setRequest({ show_schema: value ? undefined : false })} />
		</details>
	</section>`;
}

Playground.Form = function () {
	const { server, request, toolsText, isBusy } = store.useStore();
	return html`<div class="form">
		<${LanguageForm} />
		<${Messages} messages=${request.messages} />
		<${Tools} text=${toolsText} choice=${request.tool_choice} />
		<${Sampling} request=${request} />
		<div class="buttons" role="group" aria-label="Actions">
			<button id="generate" class="primary" disabled=${!server} title="Ctrl+Enter" onClick=${runs.generate}>Generate</button>
			<button id="stop" disabled=${!isBusy} title="Escape" onClick=${runs.stop}>Stop</button>
			<button id="compare" disabled=${!server} onClick=${() => Playground.compare()}>Compare</button>
		</div>
	</div>`;
};
})((window.Playground ??= {}));
