/** The tab Compare: a request without its language, with it, and with a draft first; marks what differs. */
(function (Playground) {
"use strict";

const { html, useMemo } = htmPreact;
const { store, runs } = Playground;
const { plain, count, duration } = Playground.text;
const MOST_CELLS = 2e7; // of the table of two texts; longer ones are not compared

/** The answers to compare, and what each changes in the request. */
const WAYS = {
	plain: ["Without constraint", () => ({ language: null, draft: undefined, tools: undefined, tool_choice: undefined })],
	constrained: ["Constrained", () => ({ draft: undefined })],
	draft: ["Draft first", ({ draft }) => ({ draft: draft || true })],
};

/** Asks for all answers to the request of the form, one after the other. */
Playground.compare = function () {
	const request = runs.requestOrNull();
	if (!request) return;
	const names = Object.keys(WAYS).slice(0, Playground.isConstrained(request) ? 3 : 1);
	const comparison = names.map((name) => ({ name, run: runs.newRun({ ...request, ...WAYS[name][1](request) }) }));
	runs.perform(async (signal) => {
		store.set({ comparison, tab: "compare" });
		for (const { run } of comparison) {
			if (signal.aborted) run.status = "stopped";
			else await runs.follow(run, signal, store.touch);
		}
		store.touch();
	});
};

const wordsOf = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];

/** Returns the words of `text` as pairs: whether `other` lacks the word there, and the word. */
function differences(text, other) {
	const [words, others] = [wordsOf(text), wordsOf(other)];
	const width = words.length + 1;
	if (width * others.length > MOST_CELLS) return [[false, text]];
	const lengths = new Uint16Array(width * (others.length + 1)); // of the longest common sequences of all ends
	for (let row = others.length - 1; row >= 0; row--) {
		for (let column = words.length - 1; column >= 0; column--) {
			const at = row * width + column;
			const isSame = others[row] === words[column];
			lengths[at] = isSame ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
		}
	}
	let row = 0;
	return words.map((word, column) => {
		const best = lengths[row * width + column];
		let match = row;
		while (match < others.length && others[match] !== word) match++;
		const isCommon = match < others.length && lengths[match * width + column] === best && best > 0;
		if (isCommon) row = match + 1;
		return [!isCommon, word];
	});
}

function Text({ text, other }) {
	const parts = useMemo(() => (other === null ? [[false, text]] : differences(text, other)), [text, other]);
	return html`<pre class="box">${parts.map(([isNew, words]) => (isNew ? html`<mark>${plain(words)}</mark>` : plain(words)))}</pre>`;
}

function Column({ name, run, other }) {
	const { status, done, tokens, error, reasoning, text } = run;
	const seconds = done?.timings?.generation;
	return html`<section data-way=${name} data-status=${status}>
		<h3>${WAYS[name][0]}</h3>
		<p class="quiet">${done ? `${count(tokens.length, "token")} · ${seconds ? duration(seconds) : ""} · ${done.finish_reason}` : status}</p>
		${error ? html`<p class="wrong">${plain(error.message)}</p>` : null}
		${reasoning ? html`<details><summary>Draft</summary><pre>${plain(reasoning)}</pre></details>` : null}
		<${Text} text=${text} other=${done ? other : null} />
		${done ? html`<button class="link" onClick=${() => runs.show(run)}>Show its tokens</button>` : null}
	</section>`;
}

Playground.CompareTab = function () {
	const { comparison, server } = store.useStore(true);
	const constrained = comparison?.find(({ name }) => name === "constrained");
	const other = constrained?.run.done ? constrained.run.text : null;
	return html`<p class="row spread">
			<span>Without language and tools, with them, and with a draft first.${other === null ? "" : " Marked: what the constrained answer lacks."}</span>
			<button id="compare-now" disabled=${!server} onClick=${Playground.compare}>${comparison ? "Compare again" : "Compare"}</button>
		</p>
		<div class="columns">
			${(comparison || []).map((column) => html`<${Column} key=${column.name} ...${column} other=${column === constrained ? null : other} />`)}
		</div>`;
};
})((window.Playground ??= {}));
