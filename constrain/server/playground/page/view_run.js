/** The rest of a run: summary, notes, prompt, timing, and how the budget went down. */
(function (Playground) {
"use strict";

const { html, useMemo } = htmPreact;
const { Bar, Fact } = Playground;
const { plain, number, count, percent, duration } = Playground.text;

const STATES = { running: "being written", stopped: "stopped", error: "broken off by an error" };
const REASONS = { stop: "complete", length: "complete within its budget", timeout: "completed when the time was up" };

function endWords({ status, done, request }) {
	if (status !== "done") return STATES[status];
	if (done.finish_reason === "length" && !Playground.isConstrained(request)) return "cut at its budget";
	return REASONS[done.finish_reason] || done.finish_reason;
}

function Summary({ run }) {
	const { timings = {}, log_mass: mass } = run.done || {};
	const facts = [endWords(run), count(run.tokens.length, "token")];
	if (timings.forced > 0) facts.push(`${percent(timings.forced)} forced`);
	if (timings.tokens_per_second) facts.push(`${number(timings.tokens_per_second, 1)} tokens/s`);
	const alone = typeof mass === "number" ? `. Without the constraint, the chance of an allowed token at every step was ${percent(Math.exp(mass))}.` : "";
	return html`<p id="summary" class="quiet" data-status=${run.status}>${facts.join(" · ")}${alone}</p>`;
}

function Notes({ run }) {
	const notes = run.done?.notes || [];
	return html`<div id="notes">
		<ul>${notes.map((note) => html`<li>${plain(note)}</li>`)}</ul>
		${run.reasoning ? html`<details open><summary>Reasoning</summary><pre>${plain(run.reasoning)}</pre></details>` : null}
		${run.refusal ? html`<p><b>Refusal:</b> ${plain(run.refusal)}</p>` : null}
	</div>`;
}

function PromptView({ run: { prompt } }) {
	const parts = useMemo(() => prompt?.tokens.map(({ special, text }) => (special ? html`<b class="special">${plain(text)}</b>` : plain(text))), [prompt]);
	if (!prompt) return html`<p class="quiet">The prompt is not here yet.</p>`;
	return html`<p>What was really sent: ${count(prompt.tokens.length, "token")}.</p>
		<pre class="box" tabindex="0" role="region" aria-label="Prompt">${parts}</pre>`;
}

function TimingView({ run }) {
	if (!run.done) return html`<p class="quiet">Times are here when the answer is done.</p>`;
	const { timings = {}, usage = {} } = run.done;
	const steps = { compile: "Compile the language", queue: "Wait in the queue", prompt: "Read the prompt", generation: "Write the answer" };
	const rows = Object.keys(steps).filter((name) => typeof timings[name] === "number");
	const longest = Math.max(1e-9, ...rows.map((name) => timings[name]));
	return html`<dl class="facts wide times">
		${rows.map((name) => html`<${Fact} name=${steps[name]}><${Bar} share=${timings[name] / longest} /> ${duration(timings[name])}<//>`)}
		<${Fact} name="Masks">${count(timings.masks, "mask")}, ${number(timings.mask_microseconds, 1)} µs each on average<//>
		<${Fact} name="Prompt">${count(usage.prompt_tokens, "token")}, ${number(usage.cached_tokens)} of them from the cache<//>
		<${Fact} name="Answer">${count(usage.completion_tokens, "token")}<//>
		${usage.draft_tokens ? html`<${Fact} name="Draft">${count(usage.draft_tokens, "token")}<//>` : null}
	</dl>`;
}

/** A plot of the budget: tokens left, and the fewest that the answer still needs. */
function BudgetTrace({ run }) {
	const { tokens } = run;
	if (tokens.length < 2) return html`<p class="quiet">There are too few tokens to draw.</p>`;
	const left = tokens.map((token) => token.tokens_left);
	const least = tokens.map((token) => token.least_tokens);
	const most = Math.max(...left, ...least);
	const words = [`tokens left: ${left[0]} to ${left.at(-1)}`, `needed to end: ${Math.max(...least)} at most`];
	const line = (values, name) => {
		const points = values.map((value, index) => [(600 * index) / (values.length - 1), 118 - (116 * value) / most]);
		return html`<polyline class=${name} points=${points.map((point) => point.map((each) => each.toFixed(1))).join(" ")} />`;
	};
	return html`<figure>
		<svg viewBox="0 0 600 120" preserveAspectRatio="none" role="img" aria-label=${words.join(", ")}>
			${line(left, "left")}${line(least, "least")}
		</svg>
		<figcaption class="row"><span class="left">${words[0]}</span><span class="least">${words[1]}</span></figcaption>
	</figure>`;
}

Object.assign(Playground, { Summary, Notes, PromptView, TimingView, BudgetTrace });
})((window.Playground ??= {}));
