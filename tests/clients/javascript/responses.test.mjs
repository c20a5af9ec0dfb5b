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

test('json_object is any JSON object', async () => {
  const made = await ask({ text: { format: { type: 'json_object' } }, max_output_tokens: 60 });
  assert.equal(typeof JSON.parse(made.output_text), 'object');
});

test('a schema without strict is enforced', async () => {
  const schema = { type: 'object', properties: { colour: { enum: ['red', 'blue'] } }, required: ['colour'] };
  const made = await ask({ text: { format: { type: 'json_schema', name: 'colour', schema } } });
  const value = JSON.parse(made.output_text);
  assert.deepEqual(Object.keys(value), ['colour']);
  assert.ok(['red', 'blue'].includes(value.colour));
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

test('tool_choice by name, none, and allowed_tools', async () => {
  const tools = [MOVE, WAIT, SAY];
  const choices = [
    [{ type: 'function', name: 'wait' }, ['wait']],
    [{ type: 'custom', name: 'say' }, ['say']],
    [{ type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'move' }] }, ['move']],
    [{ type: 'allowed_tools', mode: 'required', tools: [{ type: 'custom', name: 'say' }] }, ['say']],
  ];
  for (const [tool_choice, names] of choices) {
    const made = await ask({ tools, tool_choice });
    assert.deepEqual([...new Set(made.output.map((item) => item.name))], names);
    assert.deepEqual(made.tool_choice, tool_choice);
  }
  const none = await ask({ tools, tool_choice: 'none', max_output_tokens: 6 });
  assert.deepEqual(
    none.output.map((item) => item.type),
    ['message'],
  );
});

test('parallel_tool_calls false: one call', async () => {
  const made = await ask({ tools: [MOVE, WAIT], tool_choice: 'required', parallel_tool_calls: false });
  assert.equal(made.output.length, 1);
});

test('a custom tool takes a text of its grammar', async () => {
  const made = await ask({ tools: [SAY], tool_choice: { type: 'custom', name: 'say' } });
  for (const call of made.output) {
    assert.equal(call.type, 'custom_tool_call');
    assert.match(call.id, /^ctc_/);
    assert.match(call.input, /^hi [a-z]{2,5}$/);
  }
});

test('tools and a format in one request', async () => {
  const asked = { tools: [MOVE], text: { format: zodTextFormat(Person, 'person') } };
  const called = await parse({ ...asked, tool_choice: { type: 'function', name: 'move' } });
  Move.parse(called.output[0].parsed_arguments);
  const said = await parse({ ...asked, tool_choice: 'none' });
  Person.parse(said.output_parsed);
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

test('previous_response_id goes on from calls, with their results', async () => {
  const first = await ask({ tools: [MOVE], tool_choice: 'required' });
  const second = await ask({
    previous_response_id: first.id,
    input: results(first.output, [{ type: 'input_text', text: 'done' }]),
    tools: [MOVE],
    tool_choice: 'none',
    max_output_tokens: 4,
  });
  assert.ok(second.output_text);
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

test('store false keeps nothing', async () => {
  const made = await ask({ store: false, max_output_tokens: 2 });
  assert.equal(made.store, false);
  await refusal(client.responses.retrieve(made.id), OpenAI.NotFoundError);
  await refusal(ask({ previous_response_id: made.id }), OpenAI.BadRequestError, {
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  });
});

test('max_output_tokens never cuts JSON', async () => {
  const Story = z.object({ story: z.string() });
  const made = await parse({ text: { format: zodTextFormat(Story, 'story') }, max_output_tokens: 20 });
  assert.equal(made.status, 'completed');
  Story.parse(made.output_parsed);
});

test('log probabilities come where they are included', async () => {
  const made = await ask({ include: ['message.output_text.logprobs'], top_logprobs: 2, max_output_tokens: 3 });
  const { text, logprobs } = made.output[0].content[0];
  assert.equal(logprobs.map((each) => each.token).join(''), text);
  assert.ok(logprobs.every((each) => each.logprob <= 0 && each.top_logprobs.length === 2));
});

const REFUSED = [
  ['background', { background: true }, OpenAI.BadRequestError, { param: 'background' }],
  ['a conversation', { conversation: 'conv_1' }, OpenAI.BadRequestError, { param: 'conversation' }],
  ['an unknown model', { model: 'no-such-model' }, OpenAI.NotFoundError, { code: 'model_not_found' }],
  ['nothing to answer', { input: [] }, OpenAI.BadRequestError, { param: 'input' }],
  ['a web search', { tools: [{ type: 'web_search' }], tool_choice: 'required' }, OpenAI.BadRequestError, { param: 'tool_choice' }],
  ['a temperature above 2', { temperature: 3 }, OpenAI.BadRequestError, { param: 'temperature' }],
  ['required without tools', { tool_choice: 'required' }, OpenAI.BadRequestError, { param: 'tool_choice' }],
  [
    'an image',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:,', detail: 'auto' }] }] },
    OpenAI.BadRequestError,
    { param: /^input/ },
  ],
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
    'a strict function that is open',
    { tools: [{ type: 'function', name: 'f', strict: true, parameters: { type: 'object' } }] },
    OpenAI.BadRequestError,
    { param: 'tools[0].parameters', code: 'invalid_function_parameters' },
  ],
  [
    'a grammar that is none',
    { tools: [{ ...SAY, format: { ...SAY.format, definition: 'start: missing' } }] },
    OpenAI.BadRequestError,
    { param: /^tools\[0\]/, code: 'invalid_grammar' },
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

test('what a server like this does not have is not found', async () => {
  await refusal(client.conversations.create({}), OpenAI.NotFoundError);
  await refusal(client.responses.compact({ model: MODEL, input: 'x' }), OpenAI.NotFoundError);
  await refusal(client.responses.inputTokens.count({ model: MODEL, input: 'x' }), OpenAI.NotFoundError);
  await refusal(client.responses.cancel('resp_unknown'), OpenAI.NotFoundError);
});
