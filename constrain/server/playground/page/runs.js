/** Generations: begins and stops them, and reads their events into runs. A branch has a `parent`, of whose tokens `at` stay. */
(function (Playground) {
"use strict";

const { store, api } = Playground;
const { count } = Playground.text;
const MOST_RUNS = 40;
let lastId = 0;
let controller = null; // of the generation in progress

function newRun(request, parent = null, at = 0) {
	return {
		id: ++lastId, parent, at, request, status: "running", error: null,
		prompt: null, tokens: [], text: "", reasoning: "", refusal: "",
		partial: undefined, growing: new Set(), // the value so far, and the places that are being written
		strings: new Map(), // the strings that are being written
		calls: [], callValues: [], done: null,
	};
}

const READERS = {
	prompt: (run, event) => (run.prompt = event),
	tokens: (run, { tokens }) => tokens.forEach((token) => run.tokens.push(token)),
	text: (run, { text }) => (run.text += text),
	reasoning: (run, { text }) => (run.reasoning += text),
	refusal: (run, { text }) => (run.refusal += text),
	field: (run, { kind, path, steps, call, value = null, text }) => {
		const place = Playground.rootOf(run, call) + path;
		if (kind === "grow") run.strings.set(place, (value = (run.strings.get(place) || "") + text));
		if (typeof call === "number") run.callValues[call] = Playground.setAt(run.callValues[call], steps, value);
		else run.partial = Playground.setAt(run.partial, steps, value);
		if (kind === "complete") run.growing.delete(place);
		else run.growing.add(place);
	},
	call: (run, { index, name }) => (run.calls[index] = { name, text: "" }),
	arguments: (run, { index, text }) => (run.calls[index].text += text),
	done: (run, event) => Object.assign(run, { done: event, status: "done", text: event.text, growing: new Set() }),
	error: (run, { error }) => {
		throw api.errorOf(error);
	},
};

/** Reads the answer to a run's request until it ends or is stopped. Calls `tell(run)` after changes. */
async function follow(run, signal, tell) {
	try {
		for await (const event of api.stream("/generate", run.request, signal)) {
			if (Object.hasOwn(READERS, event.type)) READERS[event.type](run, event);
			tell(run);
		}
		if (!run.done) throw new Error("The answer ended without a result.");
	} catch (error) {
		run.status = signal.aborted ? "stopped" : "error";
		run.error = signal.aborted ? null : error;
	}
	tell(run);
}

/** Does work that `stop` can end, in place of what is in progress. */
async function perform(work) {
	stop();
	const { signal } = (controller = new AbortController());
	store.set({ isBusy: true, error: null });
	await work(signal);
	if (!signal.aborted) store.set({ isBusy: false });
}

function stop() {
	controller?.abort();
	if (store.state.isBusy) store.set({ isBusy: false });
}

/** Returns the request of the form; shows what is wrong with it, and returns null then. */
function requestOrNull() {
	try {
		return store.buildRequest();
	} catch (error) {
		store.set({ error });
		return null;
	}
}

function tell(run) {
	store.touch();
	store.announce(`${run.status}: ${count(run.tokens.length, "token")}`);
}

/** Puts a run among the newest ones, and shows it. A run whose parent is gone becomes a first one. */
function show(run) {
	const { runs } = store.state;
	const kept = runs.includes(run) ? runs : [...runs, run].slice(-MOST_RUNS);
	for (const other of kept) if (!kept.includes(other.parent)) other.parent = null;
	store.set({ run, runs: kept, error: run.error, tab: "answer" });
	if (innerWidth <= 720) setTimeout(() => document.querySelector(".tabs").scrollIntoView());
}

function start(run) {
	return perform(async (signal) => {
		show(run);
		await follow(run, signal, tell);
		if (run.error && store.state.run === run) store.set({ error: run.error });
	});
}

function generate() {
	const request = requestOrNull();
	if (request) start(newRun(request));
}

/** Generates again behind the tokens `prefix`, of which the first `at` are those of `run`. */
function branch(run, prefix, at) {
	start(newRun({ ...run.request, prefix }, run, at));
}

Playground.runs = { generate, branch, stop, show, newRun, follow, perform, requestOrNull };
})((window.Playground ??= {}));
