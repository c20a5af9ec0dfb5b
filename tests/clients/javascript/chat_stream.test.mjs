// Streams of chat completions: raw chunks, the helpers of the package, abort, and errors before the first chunk.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';

import { MODEL, MOVE, Move, Person, WAIT, all, chat, client } from './support.mjs';

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
