/** The page: header, form, tabs, keys, and the question for a key. Loaded last. */
(function (Playground) {
"use strict";

const { html, render, useEffect } = htmPreact;
const { store, api, runs, Form, Select } = Playground;
const { plain } = Playground.text;

/** Asks for a key. Returns a promise of it; it is empty if none was given. */
Playground.askForKey = function (isWrong) {
	const dialog = document.getElementById("key-dialog");
	const field = document.getElementById("key");
	document.getElementById("key-wrong").textContent = isWrong ? "The server does not accept that key." : "";
	field.value = "";
	dialog.returnValue = "";
	dialog.showModal();
	return new Promise((resolve) => {
		dialog.addEventListener("close", () => resolve(dialog.returnValue && field.value.trim()), { once: true });
	});
};

const ofRun = (name) => () => {
	const { run } = store.useStore(true);
	return run ? html`<${Playground[name]} run=${run} />` : html`<p class="quiet">Generate an answer first.</p>`;
};

const TABS = {
	answer: ["Answer", Playground.AnswerTab],
	value: ["Value", ofRun("ValueView")],
	prompt: ["Prompt", ofRun("PromptView")],
	timing: ["Timing", ofRun("TimingView")],
	budget: ["Budget", Playground.BudgetTab],
	compare: ["Compare", Playground.CompareTab],
	take: ["Export", Playground.TakeTab],
};

function moveTab(event) {
	const names = Object.keys(TABS);
	const at = names.indexOf(store.state.tab);
	const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
	if (next === undefined) return;
	event.preventDefault();
	const tab = names.at(next % names.length);
	store.set({ tab });
	document.getElementById(`tab-${tab}`).focus();
}

/** The tabs. The answer stays in the page behind another tab, so that its tokens are not made again. */
function Result() {
	const { tab, error } = store.useStore();
	const tabButton = ([name, [words]]) => html`<button id=${`tab-${name}`} role="tab" aria-selected=${String(tab === name)}
		tabindex=${tab === name ? 0 : -1} aria-controls=${tab === name ? `panel-${name}` : null} onClick=${() => store.set({ tab: name })}>${words}</button>`;
	const panel = (name) => html`<div key=${name} id=${`panel-${name}`} class="panel" role="tabpanel"
		aria-labelledby=${`tab-${name}`} hidden=${tab !== name}><${TABS[name][1]} /></div>`;
	return html`<section class="result" aria-label="Result">
		<div class="tabs" role="tablist" aria-label="Results" onKeyDown=${moveTab}>${Object.entries(TABS).map(tabButton)}</div>
		<div id="error" role="alert">
			${error
				? html`<p class="wrong">${plain(error.message)} ${error.param && !error.message.includes(error.param) ? html`<code>${plain(error.param)}</code> ` : null}
						<button class="link" onClick=${() => store.set({ error: null })}>Close</button></p>`
				: null}
		</div>
		${panel("answer")}
		${tab === "answer" ? null : panel(tab)}
	</section>`;
}

function Header() {
	const { server, request } = store.useStore();
	return html`<header>
		<h1>constrain <span>playground</span></h1>
		${server
			? html`<${Select} id="model" label="Model" value=${request.model} choices=${server.models.map(({ id }) => id)}
					onPick=${(model) => store.setRequest({ model })} />`
			: null}
		<small>${server ? plain(server.program) : ""}</small>
	</header>`;
}

const Live = () => html`<div id="live" class="unseen" aria-live="polite">${store.useStore().live}</div>`;

async function load() {
	try {
		const server = await api.ask("");
		const isThere = server.models.some(({ id }) => id === store.state.request.model);
		if (!isThere) store.setRequest({ model: server.model });
		store.set({ server });
	} catch (error) {
		store.set({ error });
	}
}

document.addEventListener("keydown", (event) => {
	if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && store.state.server) {
		event.preventDefault();
		runs.generate();
	} else if (event.key === "Escape") runs.stop();
});
document.getElementById("key-cancel").addEventListener("click", () => document.getElementById("key-dialog").close());
document.getElementById("key-form").addEventListener("submit", (event) => {
	event.preventDefault();
	document.getElementById("key-dialog").close("use");
});
window.addEventListener("hashchange", store.openLink);

function App() {
	useEffect(() => {
		store.openLink();
		load();
	}, []);
	return html`<${Header} /><main class="page"><${Form} /><${Result} /></main><${Live} />`;
}

render(html`<${App} />`, document.getElementById("app"));
})((window.Playground ??= {}));
