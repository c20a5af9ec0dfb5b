/**
 * Words, numbers and small parts for all other files, also in an exported run. Characters that cannot be seen, or that
 * change the direction of writing, are shown by name.
 */
(function (Playground) {
"use strict";

const { html } = htmPreact;
const UNSEEN =
  /[\0-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

function nameOf(character) {
  const code = character.codePointAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A text in which every character can be seen; tabs and line breaks are kept. */
const plain = (text) => String(text).replace(UNSEEN, nameOf);

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

/** A number of things with its noun: "1 token", "2 tokens". */
const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

function percent(probability) {
  const share = probability * 100;
  if (share > 0 && share < 0.01) return "< 0.01 %";
  if (share < 100 && share > 99.99) return "> 99.99 %";
  return `${number(share, share >= 10 && share < 99.95 ? 1 : 2)} %`;
}

/** The probability of a logarithm; null for none. */
const probabilityOf = (logarithm) => (typeof logarithm === "number" ? Math.min(1, Math.exp(logarithm)) : null);

function duration(seconds) {
  if (seconds >= 1) return `${number(seconds, 2)} s`;
  return seconds < 0.001 ? `${number(seconds * 1e6)} µs` : `${number(seconds * 1e3, seconds < 0.01 ? 2 : 0)} ms`;
}

/** A share, 0 to 1, as a bar; its number stands beside it. */
function Bar({ share }) {
  return html`<span class="bar" aria-hidden="true"><span style=${{ width: `${share * 100}%` }}></span></span>`;
}

function Fact({ name, children }) {
  return html`<div><dt>${name}</dt><dd>${children}</dd></div>`;
}

/** What a grammar expects at a place. */
function Expected({ list }) {
  if (!list || list.length === 0) return "anything";
  const parts = list.slice(0, 10).map(({ name, pointer }) => html`<span class="expected">
    <code>${plain(name)}</code> <small>${plain(pointer || "")}</small>
  </span>`);
  return [...parts, list.length > 10 ? `and ${count(list.length - 10, "other")}` : null];
}

/** Whether a request has a language or tools. */
const isConstrained = ({ language, tools }) => Boolean(language || (tools && tools.length > 0));

const text = { plain, marked, oneLine, number, count, percent, probabilityOf, duration };
Object.assign(Playground, { text, Bar, Fact, Expected, isConstrained });
})((window.Playground ??= {}));
