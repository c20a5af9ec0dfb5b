/** The tab Take along: the request as code and as a link, and the run as one HTML file. */
(function (Playground) {
"use strict";

const { html, useState } = htmPreact;
const { store, api, Select, SNIPPETS } = Playground;
const { plain } = Playground.text;

async function copy(text) {
  if (!navigator.clipboard) throw new Error("The browser copies only from pages of HTTPS or of this machine.");
  await navigator.clipboard.writeText(text);
}

async function copyLink() {
  const link = store.linkTo(store.buildRequest());
  history.replaceState(null, "", link);
  await copy(link);
}

async function exportRun({ request, prompt, tokens, done }) {
  const response = await api.send("/export", { request, prompt, tokens, done });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = "constrain-answer.html";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A button that does something and then tells how it went. */
function Action({ id, words, done, act, disabled }) {
  const [result, setResult] = useState("");
  const click = () => act().then(() => setResult(done), (error) => setResult(error.message));
  return html`<p class="row"><button id=${id} disabled=${disabled} onClick=${click}>${words}</button><span role="status" id=${`${id}-result`}>${plain(result)}</span></p>`;
}

function snippetOf(name, schema) {
  try {
    return SNIPPETS[name](store.buildRequest(), schema, api.hasKey());
  } catch ({ message }) {
    return message;
  }
}

Playground.TakeTab = function () {
  const { request: { model, language }, run } = store.useStore();
  const [name, setName] = useState("Python");
  const isShort = language?.kind === "short"; // a chat completion needs the schema that it stands for
  const { answer } = api.useAnswer("/check", isShort && { model, language }, 0);
  const text = snippetOf(name, isShort && answer?.schema);
  return html`<div class="row">
      <${Select} id="snippet-kind" label="Request as" value=${name} choices=${Object.keys(SNIPPETS)} onPick=${setName} />
      <${Action} id="copy" words="Copy" done="Copied." act=${() => copy(text)} />
    </div>
    <pre id="snippet" class="box" tabindex="0" role="region" aria-label="Code">${text}</pre>
    <${Action} id="copy-link" words="Copy a link to this request" done="Copied. The address of this page holds it, too." act=${copyLink} />
    <${Action} id="export" words="Export the answer as one HTML file" done="Exported." disabled=${!run?.done} act=${() => exportRun(run)} />`;
};
})((window.Playground ??= {}));
