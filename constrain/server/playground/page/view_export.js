/** An exported run: a file that shows an answer without a server; the element `#run` has the run. */
(function (Playground) {
"use strict";

const { html, render, useRef } = htmPreact;
const { plain } = Playground.text;

function ExportedRun({ run }) {
	const [shown, handlers] = Playground.useShownToken(run);
	const list = useRef(null);
	const { model, language } = run.request;
	return html`<main>
		<h1>An answer of ${plain(model)}</h1>
		<${Playground.Summary} run=${run} />
		<${Playground.Notes} run=${run} />
		<h2>Tokens</h2><${Playground.Legend} />
		<${Playground.Tokens} run=${run} listRef=${list} ...${handlers} />
		<${Playground.TokenDetails} token=${run.tokens[shown]} />
		<h2>Value</h2><${Playground.ValueView} run=${run} />
		<h2>Language: ${language ? plain(language.kind) : "none"}</h2><pre>${language ? plain(language.text) : ""}</pre>
		<h2>Prompt</h2><${Playground.PromptView} run=${run} />
		<h2>Timing</h2><${Playground.TimingView} run=${run} />
		<h2>Budget</h2><${Playground.BudgetTrace} run=${run} />
	</main>`;
}

document.addEventListener("DOMContentLoaded", () => {
	const data = JSON.parse(document.getElementById("run").textContent);
	const run = { reasoning: "", ...data, text: data.done ? data.done.text : "", status: data.done ? "done" : "stopped" };
	render(html`<${ExportedRun} run=${run} />`, document.getElementById("app"));
});
})((window.Playground ??= {}));
