/** Fields of the form: a choice, a box to tick, a number, and a text field with line numbers. */
(function (Playground) {
"use strict";

const { html, useLayoutEffect, useRef, useState } = htmPreact;
const LINE = 20; // height of a line in pixels, as in style.css

/** A choice; `choices` are values, or pairs of a value and its words. `isHidden`: only screen readers read the label. */
function Select({ id, label, isHidden, value, choices, onPick }) {
	const pairs = choices.map((choice) => [choice].flat());
	return html`<label>
		<span class=${isHidden ? "unseen" : null}>${label} </span>
		<select id=${id} value=${value} onChange=${(event) => onPick(event.target.value)}>
			${pairs.map(([name, words = name]) => html`<option value=${name} selected=${name === value}>${Playground.text.plain(words)}</option>`)}
		</select>
	</label>`;
}

function Tick({ id, label, value, onPick }) {
	return html`<label class="tick"><input id=${id} type="checkbox" checked=${value} onChange=${(event) => onPick(event.target.checked)} /> ${label}</label>`;
}

/** A number; `undefined` leaves it to the server. */
function NumberField({ id, label = id.replace(/_/g, " "), value = "", onPick, range: [min, max] }) {
	const [typed, setTyped] = useState(""); // such as "0.", which is a number already
	const pick = ({ target }) => {
		setTyped(target.value);
		onPick(target.value === "" ? undefined : Number(target.value));
	};
	const shown = typed !== "" && Number(typed) === value ? typed : value;
	return html`<label>${label} <input id=${id} type="number" placeholder="default" step="any" min=${min} max=${max} value=${shown} onInput=${pick} /></label>`;
}

/** Moves the caret of a text field to a line and column, from 1. */
function goTo(id, line, column) {
	const field = document.getElementById(id);
	const lines = field.value.split("\n");
	const before = [...lines.slice(0, line - 1), Array.from(lines[line - 1] || "").slice(0, (column || 1) - 1).join("")];
	const offset = before.join("\n").length;
	field.focus();
	field.setSelectionRange(offset, offset);
	field.scrollTop = (line - 4) * LINE;
}

/** A text field with line numbers; `marks` are `[{line, kind}]`, `errors` the ids of the elements with their messages. */
function Editor({ id, label, text, marks, isWrong, errors, rows, onText }) {
	const field = useRef(null);
	const gutter = useRef(null);
	const follow = () => (gutter.current.style.transform = `translateY(${-field.current.scrollTop}px)`);
	useLayoutEffect(follow);
	const count = text.split("\n").length;
	const shown = marks.filter(({ line }) => line && line <= count);
	return html`<div class="editor" style=${{ height: `${Math.max(rows, Math.min(16, count)) * LINE + 14}px` }}>
		<div class="gutter" aria-hidden="true" ref=${gutter}>
			${Array.from({ length: count }, (_, index) => index + 1).join("\n")}
			${shown.map(({ line, kind }) => html`<div class=${`mark ${kind}`} data-line=${line} style=${{ top: `${(line - 1) * LINE}px` }}>
				${kind === "errors" ? "✖" : "▲"}
			</div>`)}
		</div>
		<textarea id=${id} ref=${field} class="code" wrap="off" spellcheck=${false} autocapitalize="off" aria-label=${label}
			aria-invalid=${isWrong ? "true" : "false"} aria-describedby=${errors}
			value=${text} onInput=${(event) => onText(event.target.value)} onScroll=${follow}></textarea>
	</div>`;
}

Object.assign(Playground, { Select, Tick, NumberField, Editor, goTo });
})((window.Playground ??= {}));
