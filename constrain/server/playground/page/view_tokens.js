/**
 * The answer, token by token, and what is known about one of them. Used by the tab Answer and by an exported run.
 * The tokens are plain elements that `TokenList` appends, so that thousands of them are not drawn twice.
 */
(function (Playground) {
"use strict";

const { html, useLayoutEffect, useRef, useState } = htmPreact;
const { Bar, Fact, Expected } = Playground;
const { plain, marked, oneLine, number, count, percent, probabilityOf } = Playground.text;
const CHUNK = 120; // tokens after which a line break begins a new chunk
const LONGEST_CHUNK = 800; // tokens; a text without line breaks is broken there, so that a browser lays it out fast
const LINE = 23; // height of a line in pixels

const ORIGINS = {
	chosen: "chosen by the model",
	forced: "forced: the grammar left no other text",
	healed: "healed: merged with forced text",
	given: "given: part of the prefix",
	closing: "closing: written to complete the answer",
};

const LEVELS = { 5: "≥ 90 %", 4: "50–90 %", 3: "20–50 %", 2: "5–20 %", 1: "< 5 %" };

/** The step of the colour scale for a probability: 1 (unlikely) to 5, 0 if it is not known. */
function levelOf(probability) {
	return probability === null ? 0 : 1 + [0.05, 0.2, 0.5, 0.9].filter((bound) => probability >= bound).length;
}

function elementOf(token, index) {
	const element = document.createElement("span");
	const probability = probabilityOf(token.logprob);
	const known = probability === null ? "" : `, ${percent(probability)}`;
	element.className = token.special ? "token special" : "token";
	element.textContent = marked(token.text) || "∅";
	element.setAttribute("role", "option");
	element.setAttribute("aria-label", `${oneLine(token.text, 40)}, ${token.origin}${known}`);
	element.tabIndex = -1;
	Object.assign(element.dataset, { index, origin: token.origin, level: levelOf(probability) });
	return element;
}

class TokenList {
	constructor(box) {
		this.box = box;
	}

	/** Brings the box up to date with a run. Appends only what is new. */
	show(run) {
		const { box } = this;
		if (run !== this.run) {
			Object.assign(this, { run, elements: [], chunk: null, selected: null });
			box.textContent = "";
			for (const name of ["role", "aria-label"]) box.removeAttribute(name);
		}
		if (run.tokens.length === this.elements.length) return;
		const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
		for (const token of run.tokens.slice(this.elements.length)) this.add(token);
		box.setAttribute("role", "listbox");
		box.setAttribute("aria-label", "Tokens of the answer");
		if (this.selected === null) this.elements[0].tabIndex = 0;
		if (isAtEnd && run.status === "running") box.scrollTop = box.scrollHeight;
	}

	add(token) {
		if (!this.chunk || this.chunk.childElementCount >= (this.endsLine ? CHUNK : LONGEST_CHUNK)) {
			this.chunk = document.createElement("div");
			this.chunk.className = "chunk";
			this.box.append(this.chunk);
		}
		const element = elementOf(token, this.elements.length);
		this.endsLine = token.text.endsWith("\n");
		this.elements.push(element);
		this.chunk.append(element);
	}

	/** Makes a token the one whose details stay, and that the Tab key reaches. */
	select(index) {
		const before = this.elements[this.selected ?? 0];
		before.tabIndex = -1;
		before.removeAttribute("aria-selected");
		this.selected = index;
		this.elements[index].tabIndex = 0;
		this.elements[index].setAttribute("aria-selected", "true");
	}

	focus(index) {
		this.elements[Math.max(0, Math.min(this.elements.length - 1, index))].focus();
	}

	/** The index of the token above (-1) or below (1) the given one on the screen. */
	beside(index, direction) {
		const { left, top, height } = this.elements[index].getClientRects()[0];
		const below = document.elementFromPoint(left + 3, top + height / 2 + direction * LINE);
		return Number(below?.closest("#answer .token")?.dataset.index ?? index + 10 * direction);
	}
}

const MOVES = {
	ArrowRight: (list, index) => index + 1,
	ArrowLeft: (list, index) => index - 1,
	ArrowDown: (list, index) => list.beside(index, 1),
	ArrowUp: (list, index) => list.beside(index, -1),
	Home: () => 0,
	End: () => Infinity,
};

function listen(list, handlers) {
	const on = (type, handle) =>
		list.box.addEventListener(type, (event) => {
			const element = event.target.closest(".token");
			if (element) handle(Number(element.dataset.index), event);
		});
	const select = (index) => {
		list.select(index);
		handlers.current.onSelect(index);
	};
	on("mouseover", (index) => handlers.current.onHover(index));
	list.box.addEventListener("mouseleave", () => handlers.current.onHover(null));
	on("focusin", select);
	on("click", select);
	on("keydown", (index, event) => {
		if (event.ctrlKey || event.altKey || event.metaKey) return;
		if (event.key === "Enter") handlers.current.onEnter?.();
		else if (MOVES[event.key]) list.focus(MOVES[event.key](list, index));
		else return;
		event.preventDefault();
	});
}

function Tokens({ run, listRef, ...handlers }) {
	const box = useRef(null);
	const latest = useRef();
	latest.current = handlers;
	useLayoutEffect(() => listen((listRef.current = new TokenList(box.current)), latest), []);
	useLayoutEffect(() => listRef.current.show(run));
	return html`<div id="answer" class="answer" dir="ltr" ref=${box}></div>`;
}

/** Which token is shown: the one under the pointer, else the selected one. Returns its index and the handlers for `Tokens`. */
function useShownToken(run) {
	const [pointed, setPointed] = useState({});
	const of = (now) => (now.run === run ? now : { run, hovered: null, selected: null });
	const { hovered, selected } = of(pointed);
	const onHover = (index) =>
		setPointed((now) => (index === null && of(now).selected === null ? now : { ...of(now), hovered: index }));
	const onSelect = (index) => setPointed({ run, hovered: null, selected: index });
	return [hovered ?? selected, { onHover, onSelect }];
}

function Legend() {
	const levels = Object.entries(LEVELS).reverse();
	return html`<div class="legend">
		<span>Model's probability:</span>
		${levels.map(([level, words]) => html`<span class="token" data-level=${level}>${words}</span>`)}
		${Object.keys(ORIGINS).slice(1).map((name) => html`<span class="token" data-origin=${name} title=${ORIGINS[name]}>${name}</span>`)}
	</div>`;
}

function Share({ name, value }) {
	return typeof value === "number" ? html`<${Fact} name=${name}><${Bar} share=${value} /> ${percent(value)}<//>` : null;
}

function Facts({ token, vocabulary }) {
	const { allowed, mass, tokens_left: left, least_tokens: least, pointer } = token;
	const share = typeof mass === "number" ? `, to which the model alone gives ${percent(mass)}` : "";
	const same = (token.allowed_top || []).find((candidate) => candidate.token === token.token);
	return html`<dl class="facts">
		<${Fact} name="Text"><code class="big">${oneLine(token.text, 200)}</code><//>
		<${Fact} name="Token">${token.token}, number ${token.index + 1}, byte ${token.offset}<//>
		<${Fact} name="Origin">${ORIGINS[token.origin] || token.origin}<//>
		<${Share} name="Without constraint" value=${probabilityOf(token.logprob)} />
		<${Share} name="With constraint" value=${same && probabilityOf(same.logprob)} />
		<${Fact} name="Allowed">
			${allowed === null ? "all tokens" : `${count(allowed, "token")}${vocabulary ? ` of ${number(vocabulary)}` : ""}${share}`}
		<//>
		<${Fact} name="Expected"><${Expected} list=${token.expected} none=${allowed === null ? "anything" : "nothing more"} /><//>
		${typeof pointer === "string" ? html`<${Fact} name="Writes"><code>${plain(pointer) || "the whole answer"}</code><//>` : null}
		<${Fact} name="Budget">${count(left, "token")} left, ${number(least)} needed to end<//>
	</dl>`;
}

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

/** `onBranch(token, candidate)` generates again; `onWhy(token, candidate)` promises a sentence. */
function TokenDetails({ token, vocabulary, onBranch, onWhy }) {
	const [why, setWhy] = useState({});
	if (!token) {
		return html`<div id="details">
			<p class="quiet">Tap or point at a token, or reach one with Tab and the arrow keys, to see what else could stand there.</p>
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
			<${Candidates} title="Likeliest without constraint" list=${token.top} ...${handlers} />
			<${Candidates} title="Likeliest with constraint" list=${token.allowed_top} ...${handlers} />
			<p class="why-answer" role="status">${why.token === token ? why.words : ""}</p>
		</div>
	</div>`;
}

Object.assign(Playground, { Tokens, TokenDetails, Legend, useShownToken });
})((window.Playground ??= {}));
