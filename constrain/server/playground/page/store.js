/** The state of the page, above all the form's request, and its link. Components follow it with `useStore`. */
(function (Playground) {
"use strict";

const { useEffect, useReducer } = htmPreact;
const LONGEST_LINK = 60000; // characters; some programs cut longer addresses
const ROLES = ["system", "user", "assistant"];

const STARTERS = {
	json_schema: `{
  "type": "object",
  "properties": {
    "name": {"description": "first name",
      "type": "string", "maxLength": 40},
    "age": {"description": "in years",
      "type": "integer", "minimum": 0},
    "job": {"description": "her work",
      "enum": ["teacher", "engineer"]}
  },
  "required": ["name", "age", "job"]
}`,
	short: "name: first name, age int: in years, job: teacher|engineer",
	lark: 'start: "yes" | "no, because " REASON\nREASON: /[a-z ]{5,60}/ "."\n',
	gbnf: 'root ::= move ("," move)*\nmove ::= [NBRQK]? [a-h] [1-8]\n',
	regex: "[A-Z]{1,3}-[0-9]{1,4}",
};

/** The numbers of a request, with the least and the most. */
const NUMBERS = {
	max_tokens: [1],
	temperature: [0, 2],
	top_p: [0, 1],
	top_k: [0],
	min_p: [0, 1],
	seed: [0],
	repeat_penalty: [0.01, 100],
	presence_penalty: [-2, 2],
	frequency_penalty: [-2, 2],
};

const state = {
	server: null, // the answer of GET /playground/api/v1
	request: {
		language: { kind: "json_schema", text: STARTERS.json_schema },
		messages: [{ role: "user", content: "Ada is 36 years old and works as an engineer. Who is she?" }],
		max_tokens: 200,
	},
	texts: STARTERS, // the last text of each kind of language
	toolsText: "", // stands for the request's tools
	tab: "answer",
	error: null, // {message, param}
	runs: [], // all answers, the oldest first
	run: null, // the answer on the right
	isBusy: false,
	comparison: null,
	live: "", // what a screen reader is told
};

const listeners = new Set();
let frame = 0;

function set(change) {
	Object.assign(state, change);
	for (const [draw] of listeners) draw();
}

/** Draws the results with the next frame, after a run has changed. */
function touch() {
	frame ||= requestAnimationFrame(() => {
		frame = 0;
		for (const [draw, isResult] of listeners) if (isResult) draw();
	});
}

/** Makes a component follow the state. `isResult`: whether it also follows an answer that is being written. */
function useStore(isResult = false) {
	const [, draw] = useReducer((number) => number + 1, 0);
	useEffect(() => {
		const entry = [draw, isResult];
		listeners.add(entry);
		return () => listeners.delete(entry);
	}, []);
	return state;
}

const setRequest = (change) => set({ request: { ...state.request, ...change } });

/** Changes the language: another text or other policies, or another kind, which gets its last text back. */
function setLanguage({ kind, ...change }) {
	const old = state.request.language;
	if (old) state.texts = { ...state.texts, [old.kind]: old.text };
	if (kind === "none") return setRequest({ language: undefined });
	const language = { ...(kind ? { kind, text: state.texts[kind], policies: old?.policies } : old), ...change };
	return setRequest({ language });
}

/** Returns the tools. Raises an error if their text is no JSON array. */
function tools() {
	if (state.toolsText.trim() === "") return undefined;
	try {
		const found = JSON.parse(state.toolsText);
		if (Array.isArray(found)) return found;
		throw new Error("A JSON array is needed.");
	} catch ({ message }) {
		throw Object.assign(new Error(message), { param: "tools" });
	}
}

function buildRequest() {
	const { request } = state;
	const found = tools();
	return { ...request, stop: request.stop?.filter(Boolean), tools: found, tool_choice: found && request.tool_choice };
}

const textOf = (value) => (typeof value === "string" ? value : "");

/** Fills the form with a request of a link. Fields that are unknown or wrong are left out. */
function restore({ language, messages, tools: found, stop, model, ...rest }) {
	const readMessage = ({ role, content }) => ({ role: ROLES.includes(role) ? role : "user", content: textOf(content) });
	const request = { model: textOf(model) || state.request.model, messages: messages.map(readMessage) };
	if (Object.hasOwn(STARTERS, language?.kind)) {
		const policies = Object.entries(language.policies || {}).filter(([, value]) => textOf(value));
		request.language = { kind: language.kind, text: textOf(language.text), policies: Object.fromEntries(policies) };
	}
	const isFine = (name) => typeof rest[name] === "number" || (!(name in NUMBERS) && rest[name] !== undefined);
	for (const name of [...Object.keys(NUMBERS), "draft", "show_schema", "tool_choice"].filter(isFine)) request[name] = rest[name];
	if (stop) request.stop = [stop].flat().map(textOf);
	set({ request, toolsText: Array.isArray(found) ? JSON.stringify(found, null, 2) : "" });
}

/** Returns the address of this page with a request in it. Raises an error if that is too long. */
function linkTo(request) {
	const bytes = new TextEncoder().encode(JSON.stringify(request));
	const code = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
	const link = `${location.origin}${location.pathname}#${code.replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "")}`;
	if (link.length <= LONGEST_LINK) return link;
	throw new Error(`The request is too long for a link: ${link.length} characters. The limit is ${LONGEST_LINK}.`);
}

/** Fills the form from the address of the page, if that holds a request. */
function openLink() {
	if (location.hash.length < 2) return;
	try {
		const binary = atob(location.hash.slice(1).replace(/-/g, "+").replace(/_/g, "/"));
		const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
		restore(JSON.parse(new TextDecoder().decode(bytes)));
	} catch {
		set({ error: { message: "The request in the link cannot be read. Perhaps the link was cut." } });
	}
}

let announced = 0;
let waiting = 0;

/** Tells a screen reader something, at most every two seconds; the latest words count. */
function announce(live) {
	clearTimeout(waiting);
	waiting = setTimeout(() => {
		announced = Date.now();
		set({ live });
	}, announced + 2000 - Date.now());
}

Playground.store = {
	state, set, setRequest, setLanguage, touch, useStore, buildRequest, tools, linkTo, openLink, announce, NUMBERS, ROLES,
};
})((window.Playground ??= {}));
