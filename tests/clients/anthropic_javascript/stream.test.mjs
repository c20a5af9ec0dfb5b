// Streams, and the package's helper for them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MOVE, WAIT, body, callsOf, client } from './support.mjs';

test('a text is the same as without a stream', async () => {
  const stream = client.messages.stream(body({ max_tokens: 20 }));
  let text = '';
  stream.on('text', (piece) => (text += piece));
  const message = await stream.finalMessage();
  const whole = await client.messages.create(body({ max_tokens: 20 }));
  assert.equal(text, whole.content[0].text);
  assert.deepEqual(message.content, whole.content);
  assert.equal(message.stop_reason, whole.stop_reason);
  assert.equal(message.usage.output_tokens, whole.usage.output_tokens);
});

test('calls come in pieces of JSON', async () => {
  const tools = { tools: [MOVE, WAIT], tool_choice: { type: 'tool', name: 'move' } };
  const stream = client.messages.stream(body(tools));
  let json = '';
  stream.on('inputJson', (piece) => (json += piece));
  const [call] = callsOf(await stream.finalMessage());
  assert.deepEqual(JSON.parse(json), call.input);
});

test('a draft is a block of thinking', async () => {
  const schema = { type: 'object', properties: { age: { type: 'integer', maximum: 150 } }, required: ['age'] };
  const output_config = { format: { type: 'json_schema', schema } };
  const { content } = await client.messages.stream(body({ output_config, draft: 16 })).finalMessage();
  assert.deepEqual(content.map(({ type }) => type), ['thinking', 'text']);
  assert.ok(content[0].signature && content[0].thinking);
  assert.ok(Number.isInteger(JSON.parse(content[1].text).age));
});

test('events come in order', async () => {
  const kinds = [];
  for await (const event of await client.messages.create(body({ max_tokens: 2, stream: true }))) kinds.push(event.type);
  assert.deepEqual([...new Set(kinds)], [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
});

test('a stream may be left', async () => {
  const stream = client.messages.stream(body({ max_tokens: 400 }));
  for await (const event of stream) if (event.type === 'content_block_delta') break;
  assert.ok(await client.messages.create(body({ max_tokens: 1 })));
});
