// Chats and generated texts: answers, streams, formats, tools, reasoning.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chat, client, collect, MESSAGES, MODEL, MOVE, PERSON, requireMove, requirePerson, thinker } from './support.mjs';

const COUNTS = [
  'total_duration',
  'load_duration',
  'prompt_eval_count',
  'prompt_eval_duration',
  'eval_count',
  'eval_duration',
];

test('an answer has all that the type has', async () => {
  const response = await chat({ options: { num_predict: 6 } });
  assert.equal(response.model, MODEL);
  assert.equal(response.message.role, 'assistant');
  assert.ok(response.message.content);
  assert.equal(response.done, true);
  assert.equal(response.done_reason, 'length');
  assert.ok(!Number.isNaN(new Date(response.created_at).getTime()));
  for (const name of COUNTS) assert.ok(Number.isInteger(response[name]) && response[name] >= 0, name);
});

test('a stream has the same answer', async () => {
  const whole = await chat({ options: { num_predict: 6 } });
  const parts = await collect(await chat({ stream: true, options: { num_predict: 6 } }));
  assert.equal(parts.map((part) => part.message.content).join(''), whole.message.content);
  assert.deepEqual(parts.map((part) => part.done), [...Array(parts.length - 1).fill(false), true]);
  assert.equal(parts.at(-1).eval_count, 6);
});

test('a schema is enforced', async () => {
  requirePerson((await chat({ format: PERSON })).message.content);
  const parts = await collect(await chat({ format: PERSON, stream: true, options: { temperature: 1.5, seed: 4 } }));
  requirePerson(parts.map((part) => part.message.content).join(''));
});

test('json is any object', async () => {
  const value = JSON.parse((await chat({ format: 'json', options: { num_predict: 40 } })).message.content);
  assert.ok(value !== null && typeof value === 'object' && !Array.isArray(value));
});

test('characters of any script are whole', async () => {
  const text = 'äöü 漢字 🎉 \u2028 end';
  const parts = await collect(await chat({ format: { const: { text } }, stream: true }));
  assert.deepEqual(JSON.parse(parts.map((part) => part.message.content).join('')), { text });
});

test('calls have arguments as objects', async () => {
  const more = { tools: [MOVE], tool_choice: 'required', parallel_tool_calls: false, options: { num_predict: 80 } };
  const { message } = await chat(more);
  assert.equal(message.tool_calls.length, 1);
  requireMove(message.tool_calls[0]);
  const parts = await collect(await chat({ ...more, stream: true }));
  const calls = parts.flatMap((part) => part.message.tool_calls ?? []);
  assert.deepEqual(calls.map((call) => call.function), message.tool_calls.map((call) => call.function));
  const messages = [...MESSAGES, message, { role: 'tool', tool_name: 'move', content: 'done' }];
  assert.ok((await chat({ messages, tools: [MOVE], options: { num_predict: 4 } })).message);
});

test('reasoning is apart from the answer', async () => {
  const more = { model: 'thinker', format: { enum: ['yes', 'no'] }, options: { num_predict: 24 } };
  for (const think of [true, 'low', false]) {
    const { message } = await chat({ ...more, think }, thinker);
    assert.ok(['yes', 'no'].includes(JSON.parse(message.content)));
    assert.equal(Boolean(message.thinking), think !== false);
    const parts = await collect(await chat({ ...more, think, stream: true }, thinker));
    assert.equal(parts.some((part) => part.message.thinking), think !== false);
  }
});

test('generate answers prompts and continues raw ones', async () => {
  const request = { model: MODEL, prompt: 'One, two,', options: { temperature: 0, num_predict: 4 } };
  const raw = await client.generate({ ...request, raw: true });
  assert.match(raw.response, /three/);
  const parts = await collect(await client.generate({ ...request, raw: true, stream: true }));
  assert.equal(parts.map((part) => part.response).join(''), raw.response);
  assert.ok((await client.generate({ ...request, system: 'Be brief.' })).response);
  const { response } = await client.generate({ ...request, format: PERSON, options: { num_predict: 80 } });
  requirePerson(response);
});

test('no prompt loads the model', async () => {
  assert.equal((await client.generate({ model: MODEL, prompt: '' })).done_reason, 'load');
  const parts = await collect(await client.generate({ model: MODEL, prompt: '', stream: true }));
  assert.deepEqual(parts.map((part) => part.done_reason), ['load']);
});

test('an aborted stream ends', async () => {
  const stream = await chat({ stream: true, options: { num_predict: 500 } });
  let count = 0;
  await assert.rejects(async () => {
    for await (const part of stream) {
      assert.equal(part.done, false);
      count += 1;
      if (count === 2) stream.abort();
    }
  }, { name: 'AbortError' });
  assert.ok((await chat({ options: { num_predict: 2 } })).done);
});
