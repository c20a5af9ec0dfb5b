/**
 * What is known about one token: why it stands there, and what else could have. Used by the tab Answer and by an
 * exported run, where there is no server to ask.
 */
(function (Playground) {
"use strict";

const { html, useState } = htmPreact;
const { Bar, Fact, Expected } = Playground;
const { plain, oneLine, number, count, percent, probabilityOf } = Playground.text;

function Share({ name, value }) {
  return typeof value === "number" ? html`<${Fact} name=${name}><${Bar} share=${value} /> ${percent(value)}<//>` : null;
}

function Facts({ token, vocabulary }) {
  const { allowed, tokens_left: left, least_tokens: least, pointer } = token;
  const same = (token.allowed_top || []).find((candidate) => candidate.token === token.token);
  return html`<dl class="facts">
    <${Fact} name="Text"><code class="big">${oneLine(token.text, 200)}</code><//>
    <${Fact} name="Token">${token.token}, number ${token.index + 1}, byte ${token.offset}<//>
    <${Fact} name="Origin">${Playground.ORIGINS[token.origin] || token.origin}<//>
    <${Share} name="Model alone" value=${probabilityOf(token.logprob)} />
    <${Share} name="With the mask" value=${same && probabilityOf(same.logprob)} />
    <${Share} name="Mass left" value=${token.mass} />
    <${Fact} name="Allowed">
      ${allowed === null ? "all tokens" : count(allowed, "token")}${allowed !== null && vocabulary ? ` of ${number(vocabulary)}` : ""}
    <//>
    <${Fact} name="Expected"><${Expected} list=${token.expected} /><//>
    ${typeof pointer === "string" ? html`<${Fact} name="Writes"><code>${plain(pointer) || "the whole answer"}</code><//>` : null}
    <${Fact} name="Budget">
      ${left === null ? "no limit" : `${count(left, "token")} left`}${least === null ? "" : `, ${number(least)} needed to end`}
    <//>
  </dl>`;
}

/** One of the likeliest tokens: a button that branches, a refused one, or the token at hand. */
function Candidate({ candidate, isHere, onBranch, onWhy }) {
  const { token } = candidate;
  const text = oneLine(candidate.text, 30);
  const probability = probabilityOf(candidate.logprob);
  const isRefused = candidate.allowed === false;
  const row = html`<span class="name">${isRefused ? html`<s>${text}</s>` : text}</span>
    <${Bar} share=${probability} /><span class="share">${percent(probability)}</span>`;
  if (onBranch && !isRefused && !isHere) {
    const branch = () => onBranch(candidate);
    return html`<li><button class="candidate branch" data-token=${token} title="Branch here" onClick=${branch}>${row}</button></li>`;
  }
  const why = html`<button class="link why" data-token=${token} aria-label=${`Why is ${text} refused?`} onClick=${() => onWhy(candidate)}>why?</button>`;
  return html`<li class=${isRefused ? "refused" : null} aria-current=${isHere ? "true" : null}>
    <span class="candidate">${row}</span>${isRefused && onWhy ? why : null}
  </li>`;
}

function Candidates({ title, list, token, ...handlers }) {
  return html`<section class="candidates">
    <h3>${title}</h3>
    <ol>
      ${(list || []).map((candidate) => html`<${Candidate}
        key=${candidate.token} candidate=${candidate} isHere=${candidate.token === token.token} ...${handlers} />`)}
    </ol>
  </section>`;
}

/**
 * The details of a token. `onBranch(token, candidate)` begins a new generation; `onWhy(token, candidate)` returns a
 * promise of a sentence. Without them, nothing can be clicked.
 */
Playground.TokenDetails = function ({ token, vocabulary, onBranch, onWhy }) {
  const [why, setWhy] = useState({});
  if (!token) {
    return html`<div id="details">
      <p class="quiet">Point at a token, or reach one with Tab and the arrow keys, to see what else could stand there.</p>
    </div>`;
  }
  async function ask(candidate) {
    const name = oneLine(candidate.text, 30);
    setWhy({ token, words: "Asking…" });
    const answer = await onWhy(token, candidate);
    setWhy((now) => (now.token === token ? { token, words: `${name}: ${plain(answer)}` } : now));
  }
  const handlers = { token, onWhy: onWhy && ask, onBranch: onBranch && ((candidate) => onBranch(token, candidate)) };
  return html`<div id="details" class="details" data-index=${token.index}>
    <${Facts} token=${token} vocabulary=${vocabulary} />
    <div class="pair">
      <${Candidates} title="Without the mask" list=${token.top} ...${handlers} />
      <${Candidates} title="With the mask" list=${token.allowed_top} ...${handlers} />
      <p class="why-answer" role="status">${why.token === token ? why.words : ""}</p>
    </div>
  </div>`;
};
})((window.Playground ??= {}));
