// Errors, keys, and the list of models.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import { MESSAGES, MODEL, body, client, refusal } from './support.mjs';

const image = [{ type: 'image', source: { type: 'url', url: 'https://a.example' } }];

test('wrong requests are refused with their place', async () => {
  for (const [more, place] of [
    [{ messages: [] }, /messages/],
    [{ messages: [{ role: 'user', content: image }] }, /messages\[0\]\.content\[0\]/],
    [{ messages: [...MESSAGES, { role: 'robot', content: 'I' }] }, /messages\[1\]/],
    [{ temperature: 2 }, /temperature/],
    [{ tools: [{ type: 'web_search_20250305', name: 'web_search' }], tool_choice: { type: 'any' } }, /tool_choice/],
  ]) {
    const request = client.messages.create(body(more));
    assert.match(await refusal(request, Anthropic.BadRequestError, 'invalid_request_error'), place);
  }
});

test('what is not there', async () => {
  const kind = Anthropic.NotFoundError;
  await refusal(client.messages.create(body({ model: 'other' })), kind, 'not_found_error');
  await refusal(client.models.retrieve('other'), kind, 'not_found_error');
  await refusal(client.messages.batches.list(), kind, 'not_found_error');
});

test('a wrong key', async () => {
  const other = new Anthropic({ apiKey: 'wrong', maxRetries: 0 });
  await refusal(other.messages.create(body()), Anthropic.AuthenticationError, 'authentication_error');
});

test('the models', async () => {
  const found = [];
  for await (const model of client.models.list()) found.push(model.id);
  assert.deepEqual(found, [MODEL]);
  const { type, display_name, created_at } = await client.models.retrieve(MODEL);
  assert.deepEqual([type, display_name], ['model', MODEL]);
  assert.ok(!Number.isNaN(Date.parse(created_at)));
});

test('a page of a browser may ask', async () => {
  const browser = new Anthropic({ dangerouslyAllowBrowser: true, maxRetries: 0 });
  const { response } = await browser.messages
    .create(body({ max_tokens: 1 }), { headers: { origin: 'https://page.example' } })
    .withResponse();
  assert.equal(response.headers.get('access-control-allow-origin'), '*');
});
