/** The server's endpoint: requests in JSON, streams of events, and the key. */
(function (Playground) {
"use strict";

const { useEffect, useState } = htmPreact;
const BASE = "playground/api/v1";
const KEY = "constrain playground key";

/** An error that the server tells; `param` names the field of the request. */
const errorOf = ({ message, param }) => Object.assign(new Error(message), { param });

let asking = null; // the promise of a key, while the page asks for one

/** Asks for a key, once for all requests that wait for it. Returns whether there is one. */
async function getKey(isWrong) {
	asking ||= Playground.askForKey(isWrong);
	const key = await asking;
	asking = null;
	if (key) sessionStorage.setItem(KEY, key);
	return Boolean(key);
}

/** Sends a request: a GET without a body, else a POST. Asks for a key as long as the server wants another one. */
async function send(path, body, signal) {
	const key = sessionStorage.getItem(KEY);
	const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
	const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
	const response = await fetch(BASE + path, { ...options, headers, signal }).catch((error) => {
		throw signal?.aborted ? error : new Error("The server cannot be reached. Is it still running?");
	});
	if (response.ok) return response;
	const isOther = response.status === 401 && (sessionStorage.getItem(KEY) !== key || (await getKey(key !== null)));
	if (isOther) return send(path, body, signal);
	const { error } = await response.json().catch(() => ({}));
	throw errorOf(error || { message: `The server answered with status ${response.status}.` });
}

const ask = async (path, body, signal) => (await send(path, body, signal)).json();

/** Asks some time after the last change of `body`, if there is one. Returns `{answer, error, isOld}`; drops old answers. */
function useAnswer(path, body, milliseconds) {
	const [found, setFound] = useState({});
	const key = JSON.stringify(body);
	useEffect(() => {
		if (!body) return undefined;
		const controller = new AbortController();
		const keep = (next) => controller.signal.aborted || setFound({ key, ...next });
		const timer = setTimeout(() => {
			const answers = ask(path, body, controller.signal);
			answers.then((answer) => keep({ answer }), (error) => keep({ error: error.message }));
		}, milliseconds);
		return () => {
			clearTimeout(timer);
			controller.abort();
		};
	}, [key]);
	return { ...found, isOld: found.key !== key };
}

/** Yields the events of an answer until `[DONE]`. Closes the connection when nobody wants more. */
async function* stream(path, body, signal) {
	const reader = (await send(path, body, signal)).body.getReader();
	const decoder = new TextDecoder();
	let text = "";
	try {
		for (;;) {
			const { value, done } = await reader.read();
			if (done) throw new Error("The connection broke off before the answer was done.");
			const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
			text = blocks.pop();
			for (const block of blocks.filter((each) => each.startsWith("data:"))) {
				if (block === "data: [DONE]") return;
				yield JSON.parse(block.slice(5));
			}
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

Playground.api = { ask, send, stream, useAnswer, errorOf };
})((window.Playground ??= {}));
