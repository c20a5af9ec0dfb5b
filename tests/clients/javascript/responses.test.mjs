// responses.create and parse: text, formats, tools, conversations, and what is kept of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { toResponseInputItems } from 'openai/lib/responses/ResponseInputItems';
import { z } from 'zod';

import { MODEL, Move, Person, all, client, refusal, response } from './support.mjs';

const ask = (more) => client.responses.create(response(more));
const parse = (more) => client.responses.parse(response(more));

const MOVE = zodResponsesFunction({ name: 'move', description: 'Moves a piece.', parameters: Move });
const WAIT = { type: 'function', name: 'wait', strict: false, parameters: { type: 'object', properties: {} } };
const SAY = {
  type: 'custom',
  name: 'say',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "hi " NAME\nNAME: /[a-z]{2,5}/' },
};

const results = (output, text = 'done') =>
  output
    .filter((item) => ['function_call', 'custom_tool_call'].includes(item.type))
    .map(({ type, call_id }) => ({ type: `${type}_output`, call_id, output: text }));

test('a response has every member that OpenAI promises', async () => {
  const made = await ask({ max_output_tokens: 5, metadata: { a: 'b' } });
  assert.match(made.id, /^resp_/);
  assert.equal(made.object, 'response');
  assert.equal(made.model, MODEL);
  assert.equal(made.status, 'incomplete');
  assert.deepEqual(made.incomplete_details, { reason: 'max_output_tokens' });
  assert.deepEqual([made.error, made.instructions, made.tools], [null, null, []]);
  assert.deepEqual(made.metadata, { a: 'b' });
  assert.deepEqual(made.text.format, { type: 'text' });
  assert.equal(made.usage.output_tokens, 5);
  assert.equal(made.usage.output_tokens_details.reasoning_tokens, 0);
  assert.equal(typeof made.usage.input_tokens_details.cached_tokens, 'number');
  const [message] = made.output;
  assert.match(message.id, /^msg_/);
  assert.deepEqual([message.type, message.role], ['message', 'assistant']);
  assert.deepEqual(message.content[0].annotations, []);
  assert.equal(made.output_text, message.content[0].text);
});

test('instructions and messages of every kind', async () => {
  const made = await ask({
    instructions: 'Be brief.',
    input: [
      { role: 'developer', content: 'Use English.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Say hello.' }] },
      { role: 'assistant', content: 'Hello.' },
      { type: 'message', role: 'user', content: 'Again.' },
    ],
    max_output_tokens: 4,
  });
  assert.equal(made.instructions, 'Be brief.');
  assert.ok(made.output_text);
});

test('fields that change nothing are accepted', async () => {
  const made = await ask({
    max_output_tokens: 2,
    tools: [],
    include: ['reasoning.encrypted_content'],
    truncation: 'disabled',
    service_tier: 'auto',
    reasoning: { effort: 'low' },
    text: { verbosity: 'low' },
    user: 'ada',
    safety_identifier: 'x',
    prompt_cache_key: 'y',
    parallel_tool_calls: false,
    something_new: {},
  });
  assert.equal(made.parallel_tool_calls, false);
});

test('zodTextFormat: the parsed output', async () => {
  const made = await parse({ text: { format: zodTextFormat(Person, 'person') } });
  assert.equal(made.status, 'completed');
  assert.deepEqual(Person.parse(made.output_parsed), JSON.parse(made.output_text));
  assert.equal(made.text.format.type, 'json_schema');
});

test('zodTextFormat: recursion, unions and null', async () => {
  const Expression = z.object({
    kind: z.enum(['number', 'sum']),
    value: z.union([z.number().int().min(0).max(9), z.null()]),
    get parts() {
      return z.array(Expression).max(2);
    },
  });
  const made = await parse({ text: { format: zodTextFormat(Expression, 'expression') }, max_output_tokens: 300 });
  Expression.parse(made.output_parsed);
});

test('a function is called with arguments that zod accepts', async () => {
  const made = await parse({ tools: [MOVE, WAIT], tool_choice: 'required' });
  const calls = made.output.filter((item) => item.type === 'function_call');
  assert.ok(calls.length >= 1);
  for (const call of calls) {
    assert.match(call.id, /^fc_/);
    assert.match(call.call_id, /^call_/);
    assert.equal(call.status, 'completed');
    if (call.name === 'move') Move.parse(call.parsed_arguments);
    else assert.deepEqual([call.name, JSON.parse(call.arguments)], ['wait', {}]);
  }
});

test('a custom tool takes a text of its grammar', async () => {
  const made = await ask({ tools: [SAY], tool_choice: { type: 'custom', name: 'say' } });
  for (const call of made.output) {
    assert.equal(call.type, 'custom_tool_call');
    assert.match(call.id, /^ctc_/);
    assert.match(call.input, /^hi [a-z]{2,5}$/);
  }
});

test('an output can be sent back as input, with results', async () => {
  const input = [{ role: 'user', content: 'Move left.' }];
  const first = await parse({ input, tools: [MOVE, SAY], tool_choice: 'required' });
  input.push(...first.output, ...results(first.output));
  const second = await ask({ input, tools: [MOVE, SAY], tool_choice: 'none', max_output_tokens: 6 });
  input.push(...second.output, { role: 'user', content: 'Go on.' });
  assert.ok((await ask({ input, max_output_tokens: 4 })).output_text);
});

test('an output that the package normalizes can be sent back', async () => {
  const first = await parse({ text: { format: zodTextFormat(Person, 'person') } });
  const input = [...toResponseInputItems(first.output), { role: 'user', content: 'And John?' }];
  assert.ok((await ask({ input, max_output_tokens: 4 })).output_text);
});

test('previous_response_id goes on from a response', async () => {
  const first = await ask({ max_output_tokens: 6, instructions: 'Be brief.' });
  const second = await ask({ previous_response_id: first.id, input: 'Go on.', max_output_tokens: 4 });
  assert.equal(second.previous_response_id, first.id);
  assert.equal(second.instructions, null);
  assert.ok(second.usage.input_tokens > first.usage.input_tokens);
});

test('a response can be read again, and its input, and deleted', async () => {
  const input = [
    { role: 'user', content: 'One.' },
    { role: 'assistant', content: 'Two.' },
    { role: 'user', content: 'Three.' },
  ];
  const made = await ask({ input, max_output_tokens: 4 });
  const again = await client.responses.retrieve(made.id);
  assert.deepEqual(again.output, made.output);
  assert.equal(again.output_text, made.output_text);
  const items = await all(client.responses.inputItems.list(made.id, { order: 'asc', limit: 2 }));
  assert.deepEqual(
    items.map((item) => item.content[0].text),
    ['One.', 'Two.', 'Three.'],
  );
  await client.responses.delete(made.id);
  await refusal(client.responses.retrieve(made.id), OpenAI.NotFoundError);
});

const REFUSED = [
  ['an unknown model', { model: 'no-such-model' }, OpenAI.NotFoundError, { code: 'model_not_found' }],
  [
    'a result without a call',
    { input: [{ type: 'function_call_output', call_id: 'call_x', output: 'done' }] },
    OpenAI.BadRequestError,
    { param: 'input', message: /No tool call found for function call output with call_id call_x/ },
  ],
  [
    'a strict schema that is open',
    { text: { format: { type: 'json_schema', name: 'a', strict: true, schema: { type: 'object', properties: {} } } } },
    OpenAI.BadRequestError,
    { param: 'text.format.schema', code: 'invalid_json_schema' },
  ],
  [
    'too few tokens for any answer',
    { text: { format: zodTextFormat(Person, 'person') }, max_output_tokens: 3 },
    OpenAI.BadRequestError,
    { param: 'max_output_tokens' },
  ],
];

for (const [what, more, kind, expected] of REFUSED) {
  test(`refused: ${what}`, async () => {
    await refusal(ask(more), kind, expected);
    await refusal(ask({ ...more, stream: true }), kind, expected);
  });
}
