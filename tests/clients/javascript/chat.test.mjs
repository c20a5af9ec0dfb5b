// chat.completions.create: messages, limits, sampling, formats, and what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';

import { MESSAGES, MODEL, chat, client, refusal } from './support.mjs';

const ask = (more) => client.chat.completions.create(chat(more));
const content = (completion) => completion.choices[0].message.content;
const schemaFormat = (schema, more = {}) => ({ type: 'json_schema', json_schema: { name: 'answer', schema, ...more } });

test('a completion has every member that OpenAI promises', async () => {
  const completion = await ask({ max_tokens: 5 });
  assert.match(completion.id, /^chatcmpl-/);
  assert.equal(completion.object, 'chat.completion');
  assert.equal(completion.model, MODEL);
  assert.ok(Math.abs(completion.created - Date.now() / 1000) < 3600);
  assert.equal(completion.choices.length, 1);
  const [choice] = completion.choices;
  assert.equal(choice.index, 0);
  assert.equal(choice.logprobs, null);
  assert.equal(choice.message.role, 'assistant');
  assert.equal(choice.message.refusal, null);
  assert.equal(typeof choice.message.content, 'string');
  assert.equal(choice.finish_reason, 'length');
  assert.equal(completion.usage.completion_tokens, 5);
  assert.equal(completion.usage.total_tokens, completion.usage.prompt_tokens + 5);
  assert.equal(completion.usage.completion_tokens_details.reasoning_tokens, 0);
  assert.equal(typeof completion.usage.prompt_tokens_details.cached_tokens, 'number');
});

test('the id of a request comes with its response', async () => {
  const { data, response, request_id } = await client.chat.completions.create(chat({ max_tokens: 3 })).withResponse();
  assert.match(request_id, /^req_/);
  assert.equal(data._request_id, request_id);
  assert.equal(response.headers.get('content-type'), 'application/json');
});

test('max_completion_tokens limits as max_tokens does', async () => {
  const completion = await client.chat.completions.create({
    model: MODEL,
    messages: MESSAGES,
    max_completion_tokens: 4,
  });
  assert.equal(completion.usage.completion_tokens, 4);
  assert.equal(completion.choices[0].finish_reason, 'length');
});

test('developer messages and lists of text parts are read', async () => {
  const messages = [
    { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] },
    { role: 'user', content: [{ type: 'text', text: 'Say ' }, { type: 'text', text: 'hello.' }], name: 'ada' },
    { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
    { role: 'user', content: 'Again.' },
  ];
  assert.equal(typeof content(await ask({ messages, max_tokens: 3 })), 'string');
});

test('messages cannot speak in special tokens', async () => {
  const long = await ask({ messages: [{ role: 'user', content: '<|im_end|>'.repeat(8) }], max_tokens: 1 });
  const short = await ask({ messages: [{ role: 'user', content: '' }], max_tokens: 1 });
  assert.ok(long.usage.prompt_tokens - short.usage.prompt_tokens > 16);
});

test('equal seeds write equal texts', async () => {
  const drawn = async () => content(await ask({ temperature: 1, seed: 7, max_tokens: 12 }));
  await drawn(); // from here on the prompt is cached
  assert.equal(await drawn(), await drawn());
});

test('n answers are numbered', async () => {
  const completion = await ask({ n: 3, temperature: 1, seed: 1, max_tokens: 4 });
  assert.deepEqual(
    completion.choices.map((choice) => choice.index),
    [0, 1, 2],
  );
  assert.equal(completion.usage.completion_tokens, 12);
});

test('a stop text ends the answer and is not in it', async () => {
  const whole = content(await ask({ max_tokens: 20 }));
  const stop = whole.slice(4, 7);
  for (const given of [stop, ['\u0000\u0001', stop]]) {
    const completion = await ask({ max_tokens: 20, stop: given });
    assert.equal(content(completion), whole.slice(0, whole.indexOf(stop)));
    assert.equal(completion.choices[0].finish_reason, 'stop');
  }
});

test('a stop text does not cut JSON', async () => {
  const schema = { type: 'object', properties: { a: { const: 'x,y' }, b: { const: 1 } }, required: ['a', 'b'] };
  const completion = await ask({ response_format: schemaFormat(schema), stop: [','] });
  if (completion.choices[0].finish_reason === 'stop') {
    assert.deepEqual(JSON.parse(content(completion)), { a: 'x,y', b: 1 });
  }
});

test('logit_bias forces a token', async () => {
  const text = content(await ask({ max_tokens: 4, logit_bias: { 1000: 100 } }));
  assert.equal(text.length % 4, 0);
  assert.equal(text, text.slice(0, text.length / 4).repeat(4));
});

test('penalties are applied', async () => {
  const completion = await ask({ max_tokens: 6, presence_penalty: 1.5, frequency_penalty: 0.5 });
  assert.equal(completion.choices[0].finish_reason, 'length');
});

test('log probabilities come with every token', async () => {
  const completion = await ask({ max_tokens: 4, logprobs: true, top_logprobs: 2 });
  const tokens = completion.choices[0].logprobs.content;
  assert.equal(tokens.length, 4);
  assert.equal(tokens.map((token) => token.token).join(''), content(completion));
  for (const token of tokens) {
    assert.ok(token.logprob <= 0);
    assert.equal(Buffer.from(token.bytes).toString(), token.token);
    assert.equal(token.top_logprobs.length, 2);
    assert.ok(token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob);
  }
});

test('json_object is any JSON object', async () => {
  const completion = await ask({ response_format: { type: 'json_object' }, max_tokens: 60 });
  const value = JSON.parse(content(completion));
  assert.ok(value !== null && typeof value === 'object' && !Array.isArray(value));
});

test('a schema without strict is enforced, and its object closed', async () => {
  const schema = { type: 'object', properties: { colour: { enum: ['red', 'blue'] }, n: { type: 'integer' } } };
  const value = JSON.parse(content(await ask({ response_format: schemaFormat(schema), max_tokens: 60 })));
  for (const [key, each] of Object.entries(value)) {
    if (key === 'colour') assert.ok(['red', 'blue'].includes(each));
    else assert.ok(key === 'n' && Number.isInteger(each));
  }
});

test('response_format text is text', async () => {
  assert.ok(content(await ask({ response_format: { type: 'text' }, max_tokens: 3 })));
});

test('max_tokens never cuts JSON', async () => {
  const schema = { type: 'object', properties: { story: { type: 'string' } }, required: ['story'] };
  const completion = await ask({ response_format: schemaFormat(schema), max_tokens: 16 });
  assert.equal(typeof JSON.parse(content(completion)).story, 'string');
  assert.ok(completion.usage.completion_tokens <= 16);
});

test('too few tokens for any answer are refused with a number that works', async () => {
  const schema = { type: 'object', properties: { word: { const: 'constraint' } }, required: ['word'] };
  const error = await refusal(
    ask({ response_format: schemaFormat(schema), max_tokens: 2 }),
    OpenAI.BadRequestError,
    { param: 'max_tokens', code: 'integer_below_min_value' },
  );
  const enough = Number(error.message.match(/(\d+) are enough/)[1]);
  const completion = await ask({ response_format: schemaFormat(schema), max_tokens: enough });
  assert.deepEqual(JSON.parse(content(completion)), { word: 'constraint' });
});

test('characters of any script are whole', async () => {
  const completion = await ask({ response_format: schemaFormat({ const: { text: 'äöü 漢字 🎉' } }) });
  assert.deepEqual(JSON.parse(content(completion)), { text: 'äöü 漢字 🎉' });
});

test('fields that change nothing are accepted', async () => {
  const completion = await ask({
    max_tokens: 2,
    user: 'ada',
    store: true,
    metadata: { a: 'b' },
    service_tier: 'auto',
    safety_identifier: 'x',
    prompt_cache_key: 'y',
    reasoning_effort: 'low',
    verbosity: 'low',
    modalities: ['text'],
    parallel_tool_calls: true,
    prediction: { type: 'content', content: 'x' },
    something_new: [1],
  });
  assert.equal(completion.choices.length, 1);
});

test('a whole conversation can be sent back', async () => {
  const messages = [...MESSAGES];
  for (let turn = 0; turn < 3; turn += 1) {
    const completion = await ask({ messages, max_tokens: 4 });
    messages.push(completion.choices[0].message, { role: 'user', content: 'Go on.' });
  }
  assert.equal(messages.length, 8);
});

test('many requests are answered together', async () => {
  const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 1, maximum: 9 } }, required: ['n'] };
  const completions = await Promise.all(
    Array.from({ length: 9 }, (_, seed) => ask({ seed, temperature: 1, response_format: schemaFormat(schema) })),
  );
  for (const completion of completions) assert.ok(JSON.parse(content(completion)).n >= 1);
});

const REFUSED = [
  ['an unknown model', { model: 'no-such-model' }, OpenAI.NotFoundError, { code: 'model_not_found' }],
  ['a temperature above 2', { temperature: 2.5 }, OpenAI.BadRequestError, { code: 'decimal_above_max_value' }],
  ['a top_p above 1', { top_p: 2 }, OpenAI.BadRequestError, { param: 'top_p' }],
  ['n of nothing', { n: 0 }, OpenAI.BadRequestError, { param: 'n', code: 'integer_below_min_value' }],
  ['top_logprobs above 20', { logprobs: true, top_logprobs: 21 }, OpenAI.BadRequestError, { param: 'top_logprobs' }],
  ['five stop texts', { stop: ['a', 'b', 'c', 'd', 'e'] }, OpenAI.BadRequestError, { param: 'stop' }],
  ['no messages', { messages: [] }, OpenAI.BadRequestError, { param: /^messages/ }],
  ['an unknown role', { messages: [{ role: 'robot', content: 'x' }] }, OpenAI.BadRequestError, { param: /^messages/ }],
  [
    'an image',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }] }] },
    OpenAI.BadRequestError,
    { param: /^messages/, message: /image_url/ },
  ],
  [
    'an orphan tool message',
    { messages: [{ role: 'tool', tool_call_id: 'call_1', content: 'x' }] },
    OpenAI.BadRequestError,
    { param: /^messages/ },
  ],
  ['usage of a stream without one', { stream_options: { include_usage: true } }, OpenAI.BadRequestError, {}],
  [
    'a strict schema that is open',
    { response_format: schemaFormat({ type: 'object', properties: {} }, { strict: true }) },
    OpenAI.BadRequestError,
    { param: 'response_format', code: 'invalid_json_schema', message: /additionalProperties/ },
  ],
  [
    'a name with a space',
    { response_format: { type: 'json_schema', json_schema: { name: 'a b', schema: { type: 'object' } } } },
    OpenAI.BadRequestError,
    { param: /name/ },
  ],
  [
    'a schema that nothing matches',
    { response_format: schemaFormat({ type: 'integer', minimum: 3, maximum: 2 }) },
    OpenAI.BadRequestError,
    { param: 'response_format' },
  ],
  ['more text than fits', { messages: [{ role: 'user', content: 'word '.repeat(20_000) }] }, OpenAI.BadRequestError, {
    code: 'context_length_exceeded',
  }],
];

for (const [what, more, kind, expected] of REFUSED) {
  test(`refused: ${what}`, async () => {
    await refusal(ask(more), kind, { type: 'invalid_request_error', ...expected });
  });
}

test('all that is wrong with a strict schema is said at once', async () => {
  const schema = { type: 'object', properties: { a: { type: 'object', properties: { b: { type: 'string' } } } } };
  const error = await refusal(
    ask({ response_format: schemaFormat(schema, { strict: true }) }),
    OpenAI.BadRequestError,
  );
  assert.match(error.message, /\('properties', 'a'\)/);
  assert.match(error.message, /'required' is required/);
});
