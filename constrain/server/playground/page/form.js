/** The left side of the page: language, messages, tools, sampling and budget, and the buttons. Used by `app.js`. */
(function (Playground) {
"use strict";

const { html, useMemo } = htmPreact;
const { store, runs, Editor, LanguageForm, Select, Tick, NumberField } = Playground;
const { plain } = Playground.text;

/** Changes the messages, and moves the focus to the element that goes on. */
function setMessages(messages, focus) {
  store.setRequest({ messages });
  if (focus) setTimeout(() => document.getElementById(focus).focus());
}

function Message({ message, index, messages }) {
  const change = (field) => setMessages(messages.map((each) => (each === message ? { ...message, ...field } : each)));
  const remove = () => setMessages(messages.filter((each) => each !== message), "add-message");
  const rows = Math.min(12, Math.max(2, message.content.split("\n").length));
  return html`<div>
    <div class="row spread">
      <${Select} id=${`role-${index}`} label=${`Role of message ${index + 1}`} isHidden value=${message.role}
        choices=${store.ROLES} onPick=${(role) => change({ role })} />
      <button class="link" disabled=${messages.length === 1} aria-label=${`Remove message ${index + 1}`} onClick=${remove}>Remove</button>
    </div>
    <textarea id=${`prompt-${index}`} rows=${rows} aria-label=${`Text of message ${index + 1}`}
      value=${message.content} onInput=${(event) => change({ content: event.target.value })}></textarea>
  </div>`;
}

function Messages({ messages }) {
  const role = messages.at(-1)?.role === "user" ? "assistant" : "user";
  const add = () => setMessages([...messages, { role, content: "" }], `prompt-${messages.length}`);
  return html`<section aria-label="Messages">
    <h2>Messages</h2>
    ${messages.map((message, index) => html`<${Message} message=${message} index=${index} messages=${messages} />`)}
    <button id="add-message" onClick=${add}>Add message</button>
  </section>`;
}

/** Returns the tools of the form, or the error in them with its line, as far as the browser tells it. */
function readTools() {
  try {
    return { tools: store.tools() || [], marks: [] };
  } catch ({ message }) {
    const [, line] = /line (\d+)/.exec(message) || [];
    return { tools: [], message, marks: [{ kind: "errors", line: Number(line) }] };
  }
}

/** The field for `tool_choice`: a word, or a tool by its name. */
function ToolChoice({ choice = "auto", tools }) {
  const named = tools.filter((tool) => tool?.[tool.type]?.name);
  const nameOf = (tool) => String(tool[tool.type].name);
  const pick = (value) => {
    const tool = named.find((each) => nameOf(each) === value);
    store.setRequest({ tool_choice: tool ? { type: tool.type, [tool.type]: { name: value } } : value });
  };
  return html`<${Select} id="tool-choice" label="Tool choice" choices=${["auto", "required", "none", ...named.map(nameOf)]}
    value=${choice.type ? choice[choice.type]?.name : choice} onPick=${pick} />`;
}

function Tools({ text, choice }) {
  const { tools, message, marks } = useMemo(readTools, [text]);
  return html`<details id="tools">
    <summary>Tools${tools.length > 0 ? ` (${tools.length})` : ""}</summary>
    <${Editor} id="tools-text" label="Tools as a JSON array, in OpenAI's form" text=${text} marks=${marks}
      isWrong=${Boolean(message)} errors="tools-error" rows=${4} onText=${(toolsText) => store.set({ toolsText })} />
    <p id="tools-error" class="wrong" aria-live="polite">${message ? plain(message) : ""}</p>
    <p class="quiet">${'[{"type": "function", "function": {"name": …, "parameters": {…}}}, …]'}</p>
    <${ToolChoice} choice=${choice} tools=${tools} />
  </details>`;
}

function Numbers({ from, to, request }) {
  const field = ([name, bounds]) =>
    html`<${NumberField} id=${name} ...${bounds} value=${request[name]} onPick=${(value) => store.setRequest({ [name]: value })} />`;
  return html`<div class="grid">${Object.entries(store.NUMBERS).slice(from, to).map(field)}</div>`;
}

function Sampling({ request }) {
  const { stop = [], draft = false, show_schema: shows = true } = request;
  const setStop = ({ target: { value } }) => store.setRequest({ stop: value ? value.split("\n") : undefined });
  return html`<section aria-label="Budget and sampling">
    <h2>Budget and sampling</h2>
    <${Numbers} from=${0} to=${2} request=${request} />
    <details id="sampling">
      <summary>More options</summary>
      <${Numbers} from=${2} request=${request} />
      <label>Stop texts, one a line <textarea id="stop-texts" rows="2" value=${stop.join("\n")} onInput=${setStop}></textarea></label>
      <${Tick} id="draft" label="Draft first" value=${Boolean(draft)} onPick=${(value) => store.setRequest({ draft: value || undefined })} />
      ${draft
        ? html`<${NumberField} id="draft-tokens" label="tokens of the draft" min="1" value=${draft === true ? "" : draft}
            onPick=${(value) => store.setRequest({ draft: value || true })} />`
        : null}
      <${Tick} id="show-schema" label="Show the schema to the model" value=${shows}
        onPick=${(value) => store.setRequest({ show_schema: value ? undefined : false })} />
    </details>
  </section>`;
}

Playground.Form = function () {
  const { server, request, toolsText, isBusy } = store.useStore();
  return html`<div class="form">
    <${LanguageForm} />
    <${Messages} messages=${request.messages} />
    <${Tools} text=${toolsText} choice=${request.tool_choice} />
    <${Sampling} request=${request} />
    <div class="buttons" role="group" aria-label="Actions">
      <button id="generate" class="primary" disabled=${!server} title="Ctrl+Enter" onClick=${runs.generate}>Generate</button>
      <button id="stop" disabled=${!isBusy} title="Escape" onClick=${runs.stop}>Stop</button>
      <button id="compare" disabled=${!server} onClick=${() => Playground.compare()}>Compare</button>
    </div>
  </div>`;
};
})((window.Playground ??= {}));
