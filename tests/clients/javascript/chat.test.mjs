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

test('a schema without strict is enforced, and its object closed', async () => {
  const schema = { type: 'object', properties: { colour: { enum: ['red', 'blue'] }, n: { type: 'integer' } } };
  const value = JSON.parse(content(await ask({ response_format: schemaFormat(schema), max_tokens: 60 })));
  for (const [key, each] of Object.entries(value)) {
    if (key === 'colour') assert.ok(['red', 'blue'].includes(each));
    else assert.ok(key === 'n' && Number.isInteger(each));
  }
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

const REFUSED = [
  ['an unknown model', { model: 'no-such-model' }, OpenAI.NotFoundError, { code: 'model_not_found' }],
  ['a temperature above 2', { temperature: 2.5 }, OpenAI.BadRequestError, { code: 'decimal_above_max_value' }],
  [
    'an image',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }] }] },
    OpenAI.BadRequestError,
    { param: /^messages/, message: /image_url/ },
  ],
  [
    'a strict schema that is open',
    { response_format: schemaFormat({ type: 'object', properties: {} }, { strict: true }) },
    OpenAI.BadRequestError,
    { param: 'response_format', code: 'invalid_json_schema', message: /additionalProperties/ },
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
