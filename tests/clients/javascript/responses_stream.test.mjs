// Streams of responses: every event in its place, the helpers of the package, abort.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';
import { ResponsesToolRunner, ResponsesToolRunnerError, runnerFunction } from 'openai/helpers/responses-tool-runner';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';

import { Move, Person, all, client, response } from './support.mjs';

const streamed = async (more) => all(await client.responses.create(response({ stream: true, ...more })));
const kinds = (events) => events.map((event) => event.type.replace(/^response\./, ''));
const without = (names, kind) => names.filter((name) => name !== kind);

const MOVE = zodResponsesFunction({ name: 'move', parameters: Move });
const SAY = { type: 'custom', name: 'say', format: { type: 'grammar', syntax: 'regex', definition: 'hi [a-z]{2,5}' } };

function checkNumbers(events) {
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
}

test('text: the events in their order', async () => {
  const events = await streamed({ max_output_tokens: 6 });
  checkNumbers(events);
  assert.deepEqual(without(kinds(events), 'output_text.delta'), [
    'created',
    'in_progress',
    'output_item.added',
    'content_part.added',
    'output_text.done',
    'content_part.done',
    'output_item.done',
    'incomplete',
  ]);
  const [created, , added, part] = events;
  assert.equal(created.response.status, 'in_progress');
  assert.deepEqual([added.item.status, added.item.content], ['in_progress', []]);
  assert.equal(part.part.text, '');
  const text = events.map((event) => event.delta ?? '').join('');
  const last = events.at(-1).response;
  assert.equal(last.output[0].content[0].text, text);
  assert.equal(last.id, created.response.id);
  assert.deepEqual(events.at(-2).item, last.output[0]);
});

test('a function call: the events in their order', async () => {
  const events = await streamed({ tools: [MOVE], tool_choice: 'required', parallel_tool_calls: false });
  checkNumbers(events);
  assert.deepEqual(without(kinds(events), 'function_call_arguments.delta'), [
    'created',
    'in_progress',
    'output_item.added',
    'function_call_arguments.done',
    'output_item.done',
    'completed',
  ]);
  const done = events.find((event) => event.type === 'response.function_call_arguments.done');
  assert.equal(done.name, 'move');
  Move.parse(JSON.parse(done.arguments));
  assert.equal(events.map((event) => event.delta ?? '').join(''), done.arguments);
  assert.equal(events[2].item.arguments, '');
});

test('a custom call: the events in their order', async () => {
  const events = await streamed({ tools: [SAY], tool_choice: 'required', parallel_tool_calls: false });
  checkNumbers(events);
  assert.deepEqual(without(kinds(events), 'custom_tool_call_input.delta'), [
    'created',
    'in_progress',
    'output_item.added',
    'custom_tool_call_input.done',
    'output_item.done',
    'completed',
  ]);
  const done = events.find((event) => event.type === 'response.custom_tool_call_input.done');
  assert.match(done.input, /^hi [a-z]{2,5}$/);
});

test('.stream(): deltas and the final response', async () => {
  let text = '';
  const stream = client.responses
    .stream(response({ max_output_tokens: 8 }))
    .on('response.output_text.delta', ({ delta, snapshot }) => {
      text += delta;
      assert.equal(snapshot, text);
    });
  const final = await stream.finalResponse();
  assert.equal(final.output_text, text);
});

test('.stream() with zodTextFormat: the parsed output', async () => {
  const stream = client.responses.stream(response({ text: { format: zodTextFormat(Person, 'person') } }));
  const final = await stream.finalResponse();
  assert.equal(final.status, 'completed');
  Person.parse(final.output_parsed);
});

test('.stream() with a function: parsed arguments', async () => {
  const stream = client.responses
    .stream(response({ tools: [MOVE, SAY], tool_choice: 'required' }))
    .on('response.function_call_arguments.delta', ({ delta, snapshot }) => assert.ok(snapshot.endsWith(delta)));
  const final = await stream.finalResponse();
  assert.ok(final.output.length >= 1);
  for (const item of final.output) if (item.type === 'function_call') Move.parse(item.parsed_arguments);
});

test('.stream() is read with for await', async () => {
  const events = await all(client.responses.stream(response({ max_output_tokens: 4 })));
  assert.equal(events[0].type, 'response.created');
  assert.equal(events.at(-1).type, 'response.incomplete');
});

test('a tool runner runs functions and goes on with their results', async () => {
  const seen = [];
  const tool = zodResponsesFunction({
    name: 'move',
    parameters: Move,
    function: (move) => {
      seen.push(move);
      return `moved ${move.steps}`;
    },
  });
  const runner = new ResponsesToolRunner({ functions: [runnerFunction(tool)] });
  const text = { format: zodTextFormat(Person, 'person') }; // without it the text may be cut, which ends a run
  const asked = response({ input: 'Call move: to the left, 3 steps.', parallel_tool_calls: false, text });
  const turns = [];
  try {
    for await (const turn of runner.iterate(client, asked, { maxSteps: 3 })) turns.push(turn);
  } catch (error) {
    assert.ok(error instanceof ResponsesToolRunnerError);
    assert.equal(turns.length, 3); // a small model may call for ever
  }
  const calls = turns.flatMap((turn) => turn.response.output.filter((item) => item.type === 'function_call'));
  seen.forEach((move, index) => assert.deepEqual(Move.parse(move), JSON.parse(calls[index].arguments)));
  assert.ok(turns.at(-1).final || calls.length === 3);
});

test('abort ends a stream', async () => {
  const stream = client.responses.stream(response({ max_output_tokens: 1000, temperature: 1 }));
  stream.once('response.output_text.delta', () => stream.abort());
  await assert.rejects(stream.finalResponse(), OpenAI.APIUserAbortError);
});
