/** The tab Answer: the tokens with the details of one, the branches, and the field to type into the answer. */
(function (Playground) {
"use strict";

const { html, useRef, useState } = htmPreact;
const { store, api, runs, Fact, Expected } = Playground;
const { plain, oneLine, count } = Playground.text;
const WAIT = 300; // milliseconds after the last key

const idsBefore = (run, index) => run.tokens.slice(0, index).map(({ token }) => token);

function Branch({ run, current }) {
	const { id, parent, at, status, text } = run;
	const name = parent ? `Branch ${id} at token ${at + 1}` : `Answer ${id}`;
	return html`<li>
		<button class="link" data-run=${id} aria-current=${run === current ? "true" : "false"} onClick=${() => runs.show(run)}>${name}</button>
		<small> ${status === "done" ? plain(text.slice(0, 60)) : status}</small>
		<${Branches} parent=${run} current=${current} />
	</li>`;
}

function Branches({ parent, current }) {
	const found = store.state.runs.filter((run) => run.parent === parent);
	return found.length > 0 ? html`<ul>${found.map((run) => html`<${Branch} key=${run.id} run=${run} current=${current} />`)}</ul>` : null;
}

function verdict({ matches, is_complete: isComplete, line, column }) {
	if (!matches) return `The text stops matching at line ${line}, column ${column}.`;
	return isComplete ? "The text is complete." : "The text matches so far. It is not complete yet.";
}

function Explanation({ run, found, isOld }) {
	const { matches, accepted, rest, expected, next, completion, steps = [] } = found;
	const prefix = steps.filter((step) => step.is_allowed).map(({ token }) => token);
	return html`<div id="explanation" data-matches=${String(matches)}>
		<p class=${matches ? "right" : "wrong"} role="status">${verdict(found)}</p>
		<pre class="box">${plain(accepted)}${rest ? html`<mark class="rest">${plain(rest)}</mark>` : null}</pre>
		<dl class="facts wide">
			<${Fact} name="Expected there"><${Expected} list=${expected} none="nothing" /><//>
			<${Fact} name="Could follow">${plain(next || "nothing")}<//>
			<${Fact} name="A short way to finish"><code>${oneLine(completion || "", 200)}</code><//>
		</dl>
		<button id="continue" disabled=${isOld || prefix.length === 0} onClick=${() => runs.branch(run, prefix, 0)}>Generate from there</button>
	</div>`;
}

function EditMode({ run }) {
	const [text, setText] = useState(run.text);
	const { model, language } = run.request;
	const { answer, error, isOld } = api.useAnswer("/explain", { model, language, text }, WAIT);
	return html`<div class="scrolls">
		<label>Type into the answer. Below, see where it stops matching, and what could follow.
			<textarea id="edit-text" class="code" rows="6" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
		</label>
		${error ? html`<p class="wrong" role="status">${plain(error)}</p>` : null}
		${answer ? html`<${Explanation} run=${run} found=${answer} isOld=${isOld} />` : null}
	</div>`;
}

function TokenMode({ run, state }) {
	const list = useRef(null);
	const [shown, handlers] = Playground.useShownToken(run);
	const model = state.server.models.find(({ id }) => id === run.request.model);
	const enter = () => document.querySelector("#details button")?.focus();
	const leave = (event) => event.key === "Escape" && shown !== null && !state.isBusy && list.current.focus(shown);
	const branch = ({ index }, { token }) => runs.branch(run, [...idsBefore(run, index), token], index);
	const why = ({ index, tokens_left: left }, { token }) =>
		api.ask("/why", { ...run.request, max_tokens: left + index, tokens: idsBefore(run, index), token }).then(({ explanation }) => explanation, ({ message }) => message);
	return html`<div class="token-mode">
		<${Playground.Legend} />
		<${Playground.Tokens} run=${run} listRef=${list} ...${handlers} onEnter=${enter} />
		<div class="scrolls" onKeyDown=${leave}>
			<${Playground.TokenDetails} token=${run.tokens[shown]} vocabulary=${model?.n_vocab} onBranch=${branch}
				onWhy=${Playground.isConstrained(run.request) ? why : null} />
			${state.runs.length > 1
				? html`<details id="branches" open><summary>${count(state.runs.length, "answer")}</summary><${Branches} parent=${null} current=${run} /></details>`
				: null}
		</div>
	</div>`;
}

Playground.AnswerTab = function () {
	const state = store.useStore(true);
	const [edited, setEdited] = useState(null); // the run that is typed into
	const { run } = state;
	if (!run) {
		return html`<div class="box">
			<p>Say in the form what the answer may be, then press <b>Generate</b> or <kbd>Ctrl</kbd> + <kbd>Enter</kbd>.</p>
			<p class="quiet">Each token shows how likely the model found it, what else was allowed, and what was forced.</p>
		</div>`;
	}
	const isEdited = edited === run;
	const { language, tools } = run.request;
	const canEdit = language && !tools && run.status !== "running";
	return html`<div class="answer-tab">
		<div class="row spread">
			<${Playground.Summary} run=${run} />
			<button id="edit" aria-pressed=${isEdited ? "true" : "false"} disabled=${!canEdit} onClick=${() => setEdited(isEdited ? null : run)}>Edit</button>
		</div>
		<${Playground.Notes} run=${run} />
		${isEdited ? html`<${EditMode} key=${run.id} run=${run} />` : html`<${TokenMode} run=${run} state=${state} />`}
	</div>`;
};
})((window.Playground ??= {}));
