/** Words, numbers and small parts. Characters that cannot be seen are shown by number. */
(function (Playground) {
"use strict";

const { html } = htmPreact;
const UNSEEN = /(?![ \n\t])[\p{Cc}\p{Cf}\p{Co}\p{Z}\p{DI}]/gu;
const hex = (character, digits) => character.codePointAt(0).toString(16).padStart(digits, "0");

const plain = (text) => String(text).replace(UNSEEN, (character) => `⟨U+${hex(character, 4).toUpperCase()}⟩`);

/** A text like `plain`, with a mark at each line break and tab. */
const marked = (text) => plain(text).replace(/\n/g, "↵\n").replace(/\t/g, "⇥\t");

/** A text on one line, in which spaces can be seen, too; `longest` cuts it. */
function oneLine(text, longest = 80) {
	const cut = text.length > longest ? `${Array.from(text.slice(0, 2 * longest)).slice(0, longest).join("")}…` : text;
	return plain(cut).replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "(no text)";
}

function number(value, digits = 0) {
	return typeof value === "number" ? value.toLocaleString("en-US", { maximumFractionDigits: digits }) : "unknown";
}

const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

function percent(probability) {
	const share = probability * 100;
	if (share > 0 && share < 0.01) return "< 0.01 %";
	if (share < 100 && share > 99.99) return "> 99.99 %";
	return `${number(share, share >= 10 && share < 99.95 ? 1 : 2)} %`;
}

const probabilityOf = (logarithm) => (typeof logarithm === "number" ? Math.min(1, Math.exp(logarithm)) : null);

function duration(seconds) {
	if (seconds >= 1) return `${number(seconds, 2)} s`;
	return seconds < 0.001 ? `${number(seconds * 1e6)} µs` : `${number(seconds * 1e3, seconds < 0.01 ? 2 : 0)} ms`;
}

function Bar({ share }) {
	return html`<span class="bar" aria-hidden="true"><span style=${{ width: `${share * 100}%` }}></span></span>`;
}

function Fact({ name, children }) {
	return html`<div><dt>${name}</dt><dd>${children}</dd></div>`;
}

function Expected({ list, none }) {
	if (list.length === 0) return none;
	const parts = list.slice(0, 10).map(({ name, pointer }) => html`<span class="expected">
		<code>${plain(name)}</code> <small>${plain(pointer || "")}</small>
	</span>`);
	return [...parts, list.length > 10 ? `and ${count(list.length - 10, "other")}` : null];
}

const isConstrained = ({ language, tools }) => Boolean(language || (tools && tools.length > 0));

const text = { UNSEEN, hex, plain, marked, oneLine, number, count, percent, probabilityOf, duration };
Object.assign(Playground, { text, Bar, Fact, Expected, isConstrained });
})((window.Playground ??= {}));
