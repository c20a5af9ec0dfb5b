// Models, embeddings, completions, and what goes beside them: headers, keys, CORS, unknown paths.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';

import { AUTHORIZED, BASE_URL, MESSAGES, MODEL, all, chat, client, refusal } from './support.mjs';

const complete = (more) =>
  client.completions.create({ model: MODEL, prompt: 'Once upon a', max_tokens: 5, temperature: 0, ...more });
const embed = (more) => client.embeddings.create({ model: MODEL, input: 'Hello.', ...more });

test('models are listed and found by name', async () => {
  const models = await all(client.models.list());
  const model = models.find(({ id }) => id === MODEL);
  assert.equal(model.object, 'model');
  assert.ok(Number.isInteger(model.created));
  assert.equal(typeof model.owned_by, 'string');
  assert.deepEqual({ ...(await client.models.retrieve(MODEL)) }, model);
  await refusal(client.models.retrieve('no/such-model'), OpenAI.NotFoundError, { code: 'model_not_found' });
});

test('embeddings come as numbers, which the package asks for in base64', async () => {
  const { data, object, usage, model } = await embed({});
  assert.deepEqual([object, model, data.length], ['list', MODEL, 1]);
  assert.deepEqual([data[0].object, data[0].index], ['embedding', 0]);
  assert.ok(data[0].embedding.length > 100);
  assert.ok(data[0].embedding.every(Number.isFinite));
  assert.equal(usage.total_tokens, usage.prompt_tokens);
});

test('a completion goes on with a text', async () => {
  const { choices, object, usage, id } = await complete({});
  assert.equal(object, 'text_completion');
  assert.match(id, /^cmpl-/);
  assert.equal(choices[0].index, 0);
  assert.equal(typeof choices[0].text, 'string');
  assert.equal(choices[0].finish_reason, 'length');
  assert.equal(usage.completion_tokens, 5);
});

test('a page in a browser may ask, with all headers of the package', async () => {
  const answer = await fetch(`${BASE_URL}/chat/completions`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://example.org',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,x-stainless-lang,x-stainless-retry-count',
    },
  });
  assert.equal(answer.status, 204);
  assert.ok(['*', 'https://example.org'].includes(answer.headers.get('access-control-allow-origin')));
  assert.match(answer.headers.get('access-control-allow-methods'), /POST/);
  const allowed = answer.headers.get('access-control-allow-headers').toLowerCase();
  for (const name of ['authorization', 'content-type', 'x-stainless-lang', 'x-stainless-retry-count']) {
    assert.ok(allowed.includes(name));
  }
});

test('a page in a browser can read errors, too', async () => {
  const answer = await fetch(`${BASE_URL}/nothing`, { headers: { ...AUTHORIZED, origin: 'https://example.org' } });
  assert.equal(answer.status, 404);
  assert.ok(answer.headers.get('access-control-allow-origin'));
  assert.equal((await answer.json()).error.code, 'unknown_url');
});

test('a wrong key is an authentication error', async () => {
  const stranger = client.withOptions({ apiKey: 'wrong' });
  const expected = { status: 401, code: 'invalid_api_key' };
  await refusal(stranger.models.list(), OpenAI.AuthenticationError, expected);
  await refusal(stranger.chat.completions.create(chat({ stream: true })), OpenAI.AuthenticationError, expected);
});

test('withOptions, default headers and queries do not disturb', async () => {
  const other = client.withOptions({
    defaultHeaders: { 'OpenAI-Organization': 'org', 'X-Other': '1' },
    defaultQuery: { 'api-version': 'x' },
    organization: 'org',
    project: 'proj',
  });
  assert.ok((await other.chat.completions.create(chat({ max_tokens: 2 }))).choices.length);
});

test('asResponse gives the bytes', async () => {
  const answer = await client.chat.completions
    .create({ model: MODEL, messages: MESSAGES, max_tokens: 2 })
    .asResponse();
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).object, 'chat.completion');
});
