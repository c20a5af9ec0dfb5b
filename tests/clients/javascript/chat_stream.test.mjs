// Streams of chat completions: raw chunks, the helpers of the package, abort, and errors before the first chunk.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';

import { AUTHORIZED, BASE_URL, MESSAGES, MODEL, MOVE, Move, Person, WAIT, all, chat, client, refusal } from './support.mjs';

const streamed = async (more) => all(await client.chat.completions.create(chat({ stream: true, ...more })));

test('chunks: the role first, the reason last, one id', async () => {
  const chunks = await streamed({ max_tokens: 6 });
  assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  assert.ok(chunks.every((chunk) => chunk.object === 'chat.completion.chunk' && chunk.model === MODEL));
  assert.ok(chunks.every((chunk) => !('usage' in chunk)));
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.ok(chunks.slice(1).every((chunk) => !chunk.choices[0].delta.role));
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'length');
  assert.deepEqual(chunks.at(-1).choices[0].delta, {});
  assert.ok(chunks.slice(0, -1).every((chunk) => chunk.choices[0].finish_reason === null));
});

test('a stream says what the whole response says', async () => {
  const asked = { max_tokens: 12 };
  const whole = await client.chat.completions.create(chat(asked));
  const chunks = await streamed(asked);
  assert.equal(chunks.map((chunk) => chunk.choices[0].delta.content ?? '').join(''), whole.choices[0].message.content);
});

test('usage comes in a last chunk without choices', async () => {
  const chunks = await streamed({ max_tokens: 5, stream_options: { include_usage: true } });
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.completion_tokens, 5);
  assert.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
});

test('several answers in one stream', async () => {
  const chunks = await streamed({ n: 3, max_tokens: 4, temperature: 1, seed: 4 });
  assert.equal(chunks[0].choices[0].index, 0);
  const reasons = chunks.flatMap((chunk) => chunk.choices.filter((choice) => choice.finish_reason));
  assert.deepEqual(reasons.map((choice) => choice.index).sort(), [0, 1, 2]);
});

test('calls: id, type and name once; one after the other', async () => {
  const chunks = await streamed({ tools: [MOVE, WAIT], tool_choice: 'required' });
  const parts = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  const calls = [];
  for (const { index, id, type, function: { name, arguments: text } } of parts) {
    if (id !== undefined) {
      assert.equal(index, calls.length);
      assert.equal(type, 'function');
      assert.equal(text, '');
      calls.push({ name, text });
    } else {
      assert.equal(index, calls.length - 1);
      assert.equal(name, undefined);
      calls[index].text += text;
    }
  }
  assert.ok(calls.length >= 1);
  for (const { name, text } of calls) if (name === 'move') Move.parse(JSON.parse(text));
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
});

test('custom calls are streamed', async () => {
  const grammar = { syntax: 'lark', definition: 'start: "hi" /[a-z]{2}/' };
  const tool = { type: 'custom', custom: { name: 'say', format: { type: 'grammar', grammar } } };
  const chunks = await streamed({
    tools: [tool],
    tool_choice: { type: 'custom', custom: { name: 'say' } },
    parallel_tool_calls: false,
  });
  const parts = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  assert.deepEqual([parts[0].type, parts[0].custom.name], ['custom', 'say']);
  assert.match(parts.map((part) => part.custom.input).join(''), /^hi[a-z]{2}$/);
});

test('log probabilities are streamed', async () => {
  const chunks = await streamed({ max_tokens: 4, logprobs: true });
  const tokens = chunks.flatMap((chunk) => chunk.choices[0].logprobs?.content ?? []);
  assert.equal(tokens.length, 4);
});

test('a character is never split between chunks', async () => {
  const schema = { const: { text: 'äöü 漢字 🎉' } };
  const chunks = await streamed({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } });
  const pieces = chunks.map((chunk) => chunk.choices[0].delta.content ?? '');
  assert.ok(pieces.every((piece) => piece.isWellFormed()));
  assert.deepEqual(JSON.parse(pieces.join('')), { text: 'äöü 漢字 🎉' });
});

test('.stream(): content events and the final completion', async () => {
  const deltas = [];
  let snapshot;
  const stream = client.chat.completions
    .stream(chat({ max_tokens: 10 }))
    .on('content', (delta, text) => {
      deltas.push(delta);
      snapshot = text;
    });
  const completion = await stream.finalChatCompletion();
  assert.equal(deltas.join(''), completion.choices[0].message.content);
  assert.equal(snapshot, completion.choices[0].message.content);
  assert.equal(await stream.finalContent(), snapshot);
  assert.equal(completion.choices[0].finish_reason, 'length');
});

test('.stream() with zod: partial values, then the parsed one', async () => {
  const partial = [];
  const done = [];
  const stream = client.chat.completions
    .stream(chat({ response_format: zodResponseFormat(Person, 'person') }))
    .on('content.delta', ({ parsed }) => partial.push(parsed))
    .on('content.done', ({ parsed }) => done.push(parsed));
  const { message } = (await stream.finalChatCompletion()).choices[0];
  Person.parse(message.parsed);
  assert.deepEqual(done, [message.parsed]);
  assert.ok(partial.some((value) => value && !('mood' in value)));
});

test('.stream() with zodFunction: parsed arguments', async () => {
  const done = [];
  const stream = client.chat.completions
    .stream(chat({ tools: [zodFunction({ name: 'move', parameters: Move })], tool_choice: 'required' }))
    .on('tool_calls.function.arguments.delta', ({ name }) => assert.equal(name, 'move'))
    .on('tool_calls.function.arguments.done', (event) => done.push(event.parsed_arguments));
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0];
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(done.length, message.tool_calls.length);
  done.forEach((value) => Move.parse(value));
});

test('.stream() tells usage', async () => {
  const stream = client.chat.completions.stream(chat({ max_tokens: 3, stream_options: { include_usage: true } }));
  assert.equal((await stream.totalUsage()).completion_tokens, 3);
});

test('.stream() is read with for await', async () => {
  const stream = client.chat.completions.stream(chat({ max_tokens: 4 }));
  const chunks = await all(stream);
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'length');
});

test('a stream can be passed on as a readable stream', async () => {
  const stream = await client.chat.completions.create(chat({ stream: true, max_tokens: 6 }));
  const again = ChatCompletionStream.fromReadableStream(stream.toReadableStream());
  assert.ok((await again.finalContent()).length > 0);
});

test('a stream can be read twice with tee', async () => {
  const stream = await client.chat.completions.create(chat({ stream: true, max_tokens: 4 }));
  const [left, right] = stream.tee();
  assert.deepEqual(await all(left), await all(right));
});

test('runTools with a stream', async () => {
  const runner = client.chat.completions.runTools(
    chat({
      stream: true,
      tools: [zodFunction({ name: 'move', parameters: Move, function: ({ steps }) => `moved ${steps}` })],
      tool_choice: { type: 'function', function: { name: 'move' } },
    }),
  );
  const results = [];
  runner.on('functionToolCallResult', (result) => results.push(result));
  await runner.done();
  assert.ok(results.length >= 1);
  assert.ok(results.every((result) => /^moved [1-9]$/.test(result)));
});

test('leaving a stream frees its place', async () => {
  for (let round = 0; round < 12; round += 1) {
    const stream = await client.chat.completions.create(chat({ stream: true, max_tokens: 1000, temperature: 1 }));
    for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
  }
  assert.ok((await client.chat.completions.create(chat({ max_tokens: 2 }))).choices.length);
});

test('abort ends a stream', async () => {
  const stream = client.chat.completions.stream(chat({ max_tokens: 1000, temperature: 1 }));
  stream.once('content', () => stream.abort());
  await assert.rejects(stream.finalChatCompletion(), OpenAI.APIUserAbortError);
  assert.ok(stream.aborted);
});

test('an abort signal ends a request', async () => {
  const controller = new AbortController();
  const request = client.chat.completions.create(chat({ max_tokens: 1000 }), { signal: controller.signal });
  setTimeout(() => controller.abort(), 100);
  await assert.rejects(request, OpenAI.APIUserAbortError);
});

test('a timeout ends a request', async () => {
  await assert.rejects(
    client.chat.completions.create(chat({ max_tokens: 1500, temperature: 1 }), { timeout: 100 }),
    OpenAI.APIConnectionTimeoutError,
  );
});

test('what is refused is refused before the stream', async () => {
  const schema = { type: 'array' };
  const response_format = { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } };
  await refusal(client.chat.completions.create(chat({ stream: true, response_format })), OpenAI.BadRequestError, {
    code: 'invalid_json_schema',
  });
  const stream = client.chat.completions.stream({ model: 'no-such-model', messages: MESSAGES });
  await refusal(stream.finalChatCompletion(), OpenAI.NotFoundError, { code: 'model_not_found' });
});

test('the bytes of a stream are server-sent events that end with [DONE]', async () => {
  const response = await fetch(`${BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { ...AUTHORIZED, 'content-type': 'application/json' },
    body: JSON.stringify(chat({ stream: true, max_tokens: 3 })),
  });
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  const events = (await response.text()).split('\n\n');
  assert.deepEqual(events.slice(-2), ['data: [DONE]', '']);
  assert.ok(events.slice(0, -1).every((event) => event.startsWith('data: ')));
});
