/** The tab Budget: a slider that shows how the answer would end within another budget, and how this one went down. */
(function (Playground) {
"use strict";

const { html, useState } = htmPreact;
const { store, api } = Playground;
const { plain, marked, number, count } = Playground.text;
const WAIT = 100; // milliseconds after the last move of the slider

function Ending({ found: { fits, least, kept, closing, total }, tokens, drafted }) {
	const draft = drafted ? ` behind a draft of ${number(drafted)}` : "";
	if (!fits) return html`<p class="wrong" role="status">No answer fits${draft}. The shortest takes ${count(least, "token")}.</p>`;
	const close = closing.length > 0 ? `then ${count(closing.length, "token")} to close` : "nothing to close";
	const words = `${number(kept)} of ${count(tokens.length, "token")} stay, ${close}: ${number(total)} in all${draft}. The shortest answer takes ${number(least)}.`;
	const spans = (list, name) => list.map(({ text }) => html`<span class=${`token ${name}`}>${marked(text)}</span>`);
	return html`<p class="right" role="status">${words}</p>
		<div class="answer ending" dir="ltr" tabindex="0" role="region" aria-label="Answer">
			${spans(tokens.slice(0, kept), "kept")}<ins>${spans(closing, "closes")}</ins><del>${spans(tokens.slice(kept), "dropped")}</del>
		</div>`;
}

function Slider({ request, tokens, drafted = 0 }) {
	const [most, setMost] = useState(request.max_tokens || tokens.length || 40);
	const body = { ...request, tokens: tokens.map(({ token }) => token), max_tokens: Math.max(0, most - drafted) };
	const { answer, error } = api.useAnswer("/budget", body, WAIT);
	const words = count(most, "token");
	return html`<div class="row slider">
			<label for="budget-slider">Budget</label>
			<input id="budget-slider" type="range" min="1" max=${Math.max(40, drafted + tokens.length + 10, request.max_tokens || 0)}
				value=${most} aria-valuetext=${words} onInput=${(event) => setMost(Number(event.target.value))} />
			<output for="budget-slider">${words}</output>
			<button id="use-budget" onClick=${() => store.setRequest({ max_tokens: most })}>Use for the next answer</button>
		</div>
		<div id="budget">
			${error ? html`<p class="wrong" role="status">${plain(error)}</p>` : null}
			${answer ? html`<${Ending} found=${answer} tokens=${tokens} drafted=${drafted} />` : null}
		</div>`;
}

Playground.BudgetTab = function () {
	const { run, request } = store.useStore(true);
	const shown = run ? run.request : request;
	if (!Playground.isConstrained(shown)) return html`<p class="quiet">Only a language or a tool closes an answer in time. Free text is cut.</p>`;
	if (run?.status === "running") return html`<p class="quiet">The slider works when the answer is done.</p>`;
	return html`<${Slider} key=${run?.id} request=${shown} tokens=${run ? run.tokens : []} drafted=${run?.done?.usage.draft_tokens} />
		${run ? html`<h3>How the budget went down</h3><${Playground.BudgetTrace} run=${run} />` : null}`;
};
})((window.Playground ??= {}));
