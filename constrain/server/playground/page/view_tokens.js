/**
 * The answer, token by token: colours, marks, hover and keyboard. Used by the tab Answer and by an exported run.
 * The tokens are plain elements that `TokenList` appends; so thousands of them are never rendered twice.
 */
(function (Playground) {
"use strict";

const { html, useLayoutEffect, useRef, useState } = htmPreact;
const { marked, oneLine, percent, probabilityOf } = Playground.text;
const CHUNK = 120; // tokens after which the next line break begins a new chunk

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

/** The elements of one run's tokens in a box. */
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
    if (!this.chunk || (this.chunk.childElementCount >= CHUNK && this.endsLine)) {
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
    const rectOf = (at) => this.elements[at].getClientRects()[0];
    const isSameLine = (one, other) => Math.abs(one.top - other.top) < one.height / 2;
    const from = rectOf(index);
    const distance = (at) => Math.abs(rectOf(at).left - from.left);
    let best = null;
    for (let next = index + direction; this.elements[next]; next += direction) {
      if (isSameLine(rectOf(next), from)) continue;
      if (best !== null && !isSameLine(rectOf(next), rectOf(best))) break;
      if (best === null || distance(next) < distance(best)) best = next;
    }
    return best ?? index;
  }
}

const MOVES = {
  ArrowRight: (list, index) => index + 1,
  ArrowLeft: (list, index) => index - 1,
  ArrowDown: (list, index) => list.beside(index, 1),
  ArrowUp: (list, index) => list.beside(index, -1),
  PageDown: (list, index) => index + 50,
  PageUp: (list, index) => index - 50,
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

/** The box with the tokens of `run`; the handlers tell what the reader points to. */
function Tokens({ run, listRef, ...handlers }) {
  const box = useRef(null);
  const latest = useRef();
  latest.current = handlers;
  useLayoutEffect(() => listen((listRef.current = new TokenList(box.current)), latest), []);
  useLayoutEffect(() => listRef.current.show(run));
  return html`<div id="answer" class="answer" dir="ltr" ref=${box}></div>`;
}

/**
 * Which token of a run is shown: the one under the pointer, else the one last selected. Returns its index or null, and
 * the handlers for `Tokens`. Without a selection, the token last under the pointer stays.
 */
function useShownToken(run) {
  const [pointed, setPointed] = useState({});
  const of = (now) => (now.run === run ? now : { run, hovered: null, selected: null });
  const { hovered, selected } = of(pointed);
  const onHover = (index) =>
    setPointed((now) => (index === null && of(now).selected === null ? now : { ...of(now), hovered: index }));
  const onSelect = (index) => setPointed({ run, hovered: null, selected: index });
  return [hovered ?? selected, { onHover, onSelect }];
}

/** What colours, underlines and frames mean. */
function Legend() {
  const levels = Object.entries(LEVELS).reverse();
  return html`<div class="legend">
    <span>Model's probability:</span>
    ${levels.map(([level, words]) => html`<span class="token" data-level=${level}>${words}</span>`)}
    ${Object.keys(ORIGINS).slice(1).map((name) => html`<span class="token" data-origin=${name} title=${ORIGINS[name]}>${name}</span>`)}
  </div>`;
}

Object.assign(Playground, { Tokens, Legend, useShownToken, ORIGINS });
})((window.Playground ??= {}));
