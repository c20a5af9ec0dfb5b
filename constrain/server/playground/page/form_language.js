/** The language of the answer, checked while it is written: kind, text, errors, policies, ready grammars. Part of the form. */
(function (Playground) {
"use strict";

const { html } = htmPreact;
const { store, api, Editor, Select, Fact } = Playground;
const { plain, count, number } = Playground.text;
const WAIT = 300; // milliseconds after the last key

const KINDS = {
  json_schema: "JSON Schema",
  short: "Short syntax",
  lark: "Lark grammar",
  gbnf: "GBNF grammar",
  regex: "Regular expression",
  none: "None: free text",
};

const HELP = {
  short: "Keys with types and words: name, age int, level: low|high",
  lark: "It begins with the rule start.",
  gbnf: "It begins with the rule root.",
  regex: "The whole answer matches, in the syntax of Rust's regex crate.",
};

/** Checks the language of the form. Returns `{name, errors, findings, ...}`; `name` says how far the check is. */
function useCheck({ server, request: { model, language, max_tokens } }) {
  const { answer, error, isOld } = api.useAnswer("/check", server && language && { model, language, max_tokens }, WAIT);
  const empty = { errors: [], findings: [], facts: [] };
  if (!language) return { ...empty, name: "none" };
  if (error && !isOld) return { ...empty, name: "failed", errors: [{ message: error }] };
  return { ...empty, ...answer, name: isOld || !answer ? "checking" : answer.ok ? "valid" : "invalid" };
}

const WORDS = {
  none: () => "Nothing is enforced",
  checking: () => "Checking…",
  failed: () => "Not checked",
  invalid: ({ errors }) => count(errors.length, "error"),
  valid: ({ least_tokens: least, typical_tokens: typical }) =>
    `Valid${least ? ` · at least ${count(least, "token")}` : ""}${typical ? ` · typically ${number(typical)}` : ""}`,
};

/** An error or a finding, with a way to its line. */
function Message({ item: { kind = "error", line, column, pointer, message } }) {
  const place = `line ${line}${column ? `, column ${column}` : ""}`;
  const go = () => Playground.goTo("language-text", line, column);
  return html`<li class=${kind === "error" ? "wrong" : "finding"} data-kind=${kind}>
    ${kind === "error" ? "" : `${plain(kind)}: `}
    ${line ? html`<button class="link" onClick=${go}>${place}</button> ` : null}
    ${pointer ? html`<code>${plain(pointer)}</code> ` : null}
    ${plain(message)}
  </li>`;
}

function Policies({ known = {}, chosen = {} }) {
  const pick = (name, value) => {
    const policies = { ...chosen, [name]: value };
    if (value === known[name].default) delete policies[name];
    store.setLanguage({ policies });
  };
  const field = ([name, { default: standard, choices }]) => html`<${Select} id=${`policy-${name}`} label=${name.replace(/_/g, " ")}
    value=${chosen[name] || standard} choices=${choices} onPick=${(value) => pick(name, value)} />`;
  const changed = Object.keys(chosen).length;
  return html`<details id="policies">
    <summary>Policies${changed > 0 ? ` (${changed} changed)` : ""}</summary>
    <div class="grid">${Object.entries(known).map(field)}</div>
  </details>`;
}

async function loadGrammar(name) {
  if (name === "") return;
  try {
    const { text } = await api.ask(`/grammars/${encodeURIComponent(name)}`);
    store.setLanguage({ kind: "lark", text });
  } catch (error) {
    store.set({ error });
  }
}

Playground.LanguageForm = function () {
  const state = store.useStore();
  const check = useCheck(state);
  const { kind, text, policies } = state.request.language || { kind: "none" };
  const { kinds = Object.keys(KINDS), grammars = [], policies: known } = state.server || {};
  const marks = ["findings", "errors"].flatMap((name) => check[name].map(({ line }) => ({ line, kind: name })));
  const isSchema = kind === "json_schema" || kind === "short";
  return html`<section aria-label="Language">
    <h2>Language of the answer</h2>
    <div class="row">
      <${Select} id="kind" label="Kind of language" isHidden value=${kind} onPick=${(name) => store.setLanguage({ kind: name })}
        choices=${[...new Set([...kinds, "none"])].map((name) => [name, KINDS[name] || name])} />
      <${Select} id="grammars" label="Ready grammars" isHidden value="" onPick=${loadGrammar}
        choices=${[["", "Ready grammars…"], ...grammars]} />
    </div>
    ${kind === "none"
      ? null
      : html`<${Editor} id="language-text" label=${`Text: ${KINDS[kind] || kind}`} text=${text} marks=${marks}
          isWrong=${check.name === "invalid"} errors="check errors" rows=${kind === "short" || kind === "regex" ? 2 : 6}
          onText=${(value) => store.setLanguage({ text: value })} />`}
    <p id="check" data-state=${check.name}>${WORDS[check.name](check)}</p>
    <ul id="errors" aria-live="polite" aria-label="Errors and findings">
      ${[...check.errors.map((error) => ({ ...error, kind: "error" })), ...check.findings].slice(0, 50).map((item) => html`<${Message} item=${item} />`)}
    </ul>
    ${HELP[kind] ? html`<p class="quiet">${HELP[kind]}</p>` : null}
    ${check.facts.length > 0
      ? html`<details id="facts">
          <summary>What this language accepts</summary>
          <dl class="facts wide">${check.facts.map(([name, value]) => html`<${Fact} name=${plain(name)}>${plain(value)}<//>`)}</dl>
        </details>`
      : null}
    ${isSchema ? html`<${Policies} known=${known} chosen=${policies} />` : null}
  </section>`;
};
})((window.Playground ??= {}));
