// Messages: texts, formats, tools, counts.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';

import { MESSAGES, MODEL, MOVE, Person, WAIT, body, callsOf, client } from './support.mjs';

const create = (more) => client.messages.create(body(more));

test('a text', async () => {
  const message = await create({ system: 'Be brief.', max_tokens: 10 });
  assert.deepEqual([message.type, message.role, message.model], ['message', 'assistant', MODEL]);
  assert.match(message.id, /^msg_/);
  assert.deepEqual(message.content.map(({ type }) => type), ['text']);
  assert.ok(['end_turn', 'max_tokens'].includes(message.stop_reason));
  assert.match(message._request_id, /^req_/);
});

test('a stop sequence', async () => {
  const [{ text }] = (await create()).content;
  const word = text.split(' ')[3];
  const message = await create({ stop_sequences: [word] });
  assert.deepEqual([message.stop_reason, message.stop_sequence], ['stop_sequence', word]);
  assert.equal(message.content[0].text, text.slice(0, text.indexOf(word)));
});

test('a format, parsed', async () => {
  const message = await client.messages.parse(body({ output_config: { format: zodOutputFormat(Person) } }));
  Person.parse(message.parsed_output);
  assert.equal(message.stop_reason, 'end_turn');
});

test('a forced tool, and its result', async () => {
  const tools = [MOVE, WAIT];
  const first = await create({ tools, tool_choice: { type: 'tool', name: 'move' } });
  const [call] = callsOf(first);
  assert.equal(call.name, 'move');
  const result = { type: 'tool_result', tool_use_id: call.id, content: [{ type: 'text', text: 'Done.' }] };
  const messages = [...MESSAGES, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }];
  const second = await create({ tools, messages, tool_choice: { type: 'none' }, max_tokens: 20 });
  assert.equal(callsOf(second).length, 0);
});

test('any tool, once', async () => {
  const message = await create({ tools: [MOVE, WAIT], tool_choice: { type: 'any', disable_parallel_tool_use: true } });
  assert.equal(callsOf(message).length, 1);
});

test('a count is that of the request', async () => {
  const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages: MESSAGES, tools: [MOVE] });
  const { usage } = await create({ tools: [MOVE], max_tokens: 40 });
  assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});
