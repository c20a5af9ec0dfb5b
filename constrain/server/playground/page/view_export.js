/** An exported run: one file that shows an answer without a server. It reads the run from the element `#run`. */
(function (Playground) {
"use strict";

const { html, render, useRef } = htmPreact;
const { plain } = Playground.text;

function ExportedRun({ run }) {
  const [shown, handlers] = Playground.useShownToken(run);
  const list = useRef(null);
  const { Summary, Notes, Legend, Tokens, TokenDetails, ValueView, PromptView, TimingView, BudgetTrace } = Playground;
  const { model, language } = run.request;
  return html`<main>
    <h1>An answer of ${plain(model)}</h1>
    <${Summary} run=${run} />
    <${Notes} run=${run} />
    <${Legend} />
    <${Tokens} run=${run} listRef=${list} ...${handlers} />
    <${TokenDetails} token=${run.tokens[shown]} />
    <h2>Value</h2><${ValueView} run=${run} />
    <h2>Language: ${language ? plain(language.kind) : "none"}</h2><pre>${language ? plain(language.text) : ""}</pre>
    <h2>Prompt</h2><${PromptView} run=${run} />
    <h2>Timing</h2><${TimingView} run=${run} />
    <h2>Budget</h2><${BudgetTrace} run=${run} />
  </main>`;
}

document.addEventListener("DOMContentLoaded", () => {
  const data = JSON.parse(document.getElementById("run").textContent);
  const run = { reasoning: "", ...data, text: data.done ? data.done.text : "", status: data.done ? "done" : "stopped" };
  render(html`<${ExportedRun} run=${run} />`, document.getElementById("app"));
});
})((window.Playground ??= {}));
