// chat.completions.parse with zod: schemas of many shapes, and answers that zod accepts.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import * as zod3 from 'zod/v3';
import { z } from 'zod';

import { MESSAGES, Person, chat, client, refusal } from './support.mjs';

const parse = (type, more) =>
  client.chat.completions.parse(chat({ response_format: zodResponseFormat(type, 'answer'), ...more }));
const parsed = async (type, more) => (await parse(type, more)).choices[0].message.parsed;

test('a person', async () => {
  const completion = await parse(Person);
  const { message, finish_reason } = completion.choices[0];
  assert.deepEqual(Person.parse(message.parsed), message.parsed);
  assert.deepEqual(JSON.parse(message.content), message.parsed);
  assert.equal(finish_reason, 'stop');
});

test('a parsed message can be sent back', async () => {
  const { message } = (await parse(Person)).choices[0];
  const messages = [...MESSAGES, message, { role: 'user', content: 'And of John, aged 50.' }];
  assert.ok(await parsed(Person, { messages }));
});

test('create with a zod format gives text that zod accepts', async () => {
  const completion = await client.chat.completions.create(
    chat({ response_format: zodResponseFormat(Person, 'person') }),
  );
  Person.parse(JSON.parse(completion.choices[0].message.content));
});

test('several answers are each parsed', async () => {
  const { choices } = await parse(Person, { n: 2, temperature: 1, seed: 3 });
  for (const choice of choices) Person.parse(choice.message.parsed);
});

test('an answer that comes near its limit is complete', async () => {
  const Story = z.object({ title: z.string(), chapters: z.array(z.object({ text: z.string() })).min(1) });
  const completion = await parse(Story, { max_tokens: 40 });
  assert.ok(completion.choices[0].message.parsed.chapters.length >= 1);
  assert.ok(completion.usage.completion_tokens <= 40);
});

const Tree = z.object({
  value: z.number().int().min(0).max(9),
  get children() {
    return z.array(Tree).max(2);
  },
});
const Named = z.object({ name: z.string().max(8) });
const Step = z.object({ explanation: z.string().max(20), output: z.string().max(10) });

const SHAPES = {
  'nested objects and arrays': z.object({ steps: z.array(Step).min(1).max(2), final_answer: z.string().max(10) }),
  'enums, literals and null': z.object({
    a: z.enum(['x', 'y']),
    b: z.literal('only'),
    c: z.null(),
    d: z.boolean(),
    e: z.literal([1, 'two']),
  }),
  'nullable and optional-nullable members': z.object({
    a: z.string().max(5).nullable(),
    b: z.number().int().max(9).min(0).optional().nullable(),
  }),
  'discriminated unions': z.object({
    shape: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('circle'), radius: z.number().min(1).max(9) }),
      z.object({ kind: z.literal('square'), side: z.number().int().min(1).max(9) }),
    ]),
  }),
  'unions of scalars': z.object({ v: z.union([z.string().max(4), z.number().int().min(0).max(99), z.null()]) }),
  recursion: Tree,
  'schemas used twice': z.object({ first: Named, second: Named }),
  'intersections of objects': z.object({ v: z.intersection(z.object({ a: z.boolean() }), z.object({ b: z.boolean() })) }),
  'patterns': z.object({ plate: z.string().regex(/^[A-Z]{1,3}-[0-9]{1,4}$/), code: z.string().startsWith('ab').length(5) }),
  'lengths of strings': z.object({ v: z.string().min(3).max(6) }),
  'bounds and steps of numbers': z.object({
    a: z.number().min(1).max(2),
    b: z.number().gt(0).lt(1),
    c: z.number().multipleOf(0.5).min(0).max(10),
    d: z.number().int().negative().min(-5),
  }),
  'lengths of arrays': z.object({ a: z.array(z.boolean()).length(2), b: z.array(z.enum(['p', 'q'])).min(1).max(3) }),
  email: z.object({ v: z.email().max(30) }),
  url: z.object({ v: z.url().max(40) }),
  uuid: z.object({ v: z.uuid() }),
  'dates and times': z.object({ at: z.iso.datetime({ precision: 0 }), day: z.iso.date(), hour: z.iso.time({ precision: 0 }) }),
  'addresses of hosts': z.object({ four: z.ipv4(), six: z.ipv6() }),
  descriptions: z.object({ v: z.boolean().describe('Whether it is "so".\nOr not.') }).describe('An answer.'),
  'keys of any characters': z.object({ 'a "b"': z.boolean(), 'c\\d': z.boolean(), 'ключ': z.boolean(), '': z.boolean() }),
};

for (const [what, type] of Object.entries(SHAPES)) {
  test(`zod: ${what}`, async () => {
    const completion = await parse(type, { max_tokens: 300, temperature: 1, seed: 5 });
    const { message, finish_reason } = completion.choices[0];
    assert.deepEqual(type.parse(JSON.parse(message.content)), message.parsed);
    assert.equal(finish_reason, 'stop');
  });
}

test('schemas of zod 3', async () => {
  const Old = zod3.z.object({
    id: zod3.z.string().uuid(),
    kind: zod3.z.enum(['a', 'b']),
    size: zod3.z.number().int().min(1).max(5).nullable(),
    tags: zod3.z.array(zod3.z.string().max(5)).max(2),
  });
  Old.parse(await parsed(Old));
});

test('members come in the order of the schema', async () => {
  const value = await parsed(z.object({ z: z.boolean(), a: z.boolean(), m: z.boolean() }));
  assert.deepEqual(Object.keys(value), ['z', 'a', 'm']);
});

test('a schema whose root is no object is refused in words of OpenAI', async () => {
  const json_schema = { name: 'answer', strict: true, schema: z.toJSONSchema(z.array(z.string())) };
  const request = client.chat.completions.create(chat({ response_format: { type: 'json_schema', json_schema } }));
  await refusal(request, OpenAI.BadRequestError, {
    param: 'response_format',
    code: 'invalid_json_schema',
    message: /schema must be a JSON Schema of 'type: "object"', got 'type: "array"'/,
  });
});

test('too few tokens for any answer are refused', async () => {
  await refusal(parse(Person, { max_tokens: 3 }), OpenAI.BadRequestError, { param: 'max_tokens' });
});
