// Structured output: generateText and streamText with an Output, generateObject and streamObject, and what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { APICallError, Output, generateObject, generateText, jsonSchema, streamObject, streamText } from 'ai';

import { Loose, MODEL, Never, Optional, Person, Plan, all, options, provider } from './support.mjs';

for (const [what, schema] of Object.entries({ limits: Person, nested: Plan })) {
  test(`generateText with a schema: ${what}`, async () => {
    const { output } = await generateText(options({ output: Output.object({ schema }) }));
    schema.parse(output);
  });

  test(`generateObject: ${what}`, async () => {
    const { object, usage } = await generateObject(options({ schema }));
    schema.parse(object);
    assert.ok(usage.outputTokens > 0);
  });
}

test('streamText with a schema: parts, then the whole', async () => {
  const result = streamText(options({ output: Output.object({ schema: Person }) }));
  const parts = await all(result.partialOutputStream);
  assert.ok(parts.length > 1);
  Person.parse(parts.at(-1));
  Person.parse(await result.output);
});

test('streamObject: parts, then the whole', async () => {
  const result = streamObject(options({ schema: Plan }));
  const parts = await all(result.partialObjectStream);
  Plan.parse(parts.at(-1));
  Plan.parse(await result.object);
});

test('a list', async () => {
  const { output } = await generateText(options({ output: Output.array({ element: Person }), maxOutputTokens: 120 }));
  output.forEach((person) => Person.parse(person));
});

test('one of several texts', async () => {
  const { output } = await generateText(options({ output: Output.choice({ options: ['red', 'green', 'blue'] }) }));
  assert.ok(['red', 'green', 'blue'].includes(output));
});

test('a JSON Schema without zod', async () => {
  const schema = jsonSchema({
    type: 'object',
    properties: { size: { enum: ['small', 'large'] }, count: { type: 'integer', minimum: 1, maximum: 5 } },
    required: ['size', 'count'],
    additionalProperties: false,
  });
  const { output } = await generateText(options({ output: Output.object({ schema }) }));
  assert.ok(['small', 'large'].includes(output.size));
  assert.ok(output.count >= 1 && output.count <= 5);
});

test('without supportsStructuredOutputs, the schema is not sent: any JSON object', async () => {
  let sent;
  const spy = (url, request) => {
    sent = JSON.parse(request.body);
    return fetch(url, request);
  };
  const plain = provider({ supportsStructuredOutputs: false, fetch: spy })(MODEL);
  const { text } = await generateText(options({ model: plain, output: Output.object({ schema: Loose }) }));
  assert.deepEqual(sent.response_format, { type: 'json_object' });
  assert.equal(typeof JSON.parse(text), 'object');
});

test('refused: a schema that nothing matches', async () => {
  const request = generateText(options({ output: Output.object({ schema: Never }) }));
  await assert.rejects(
    request,
    (error) => APICallError.isInstance(error) && error.statusCode === 400 && /word/.test(error.message),
  );
});

test('refused: an optional property, unless strictJsonSchema is off', async () => {
  const asked = options({ output: Output.object({ schema: Optional }) });
  await assert.rejects(generateText(asked), (error) => error.statusCode === 400 && /required/.test(error.message));
  const { output } = await generateText({ ...asked, providerOptions: { constrain: { strictJsonSchema: false } } });
  Optional.parse(output);
});

test('refused: too few tokens for any answer', async () => {
  const request = generateText(options({ output: Output.object({ schema: Person }), maxOutputTokens: 2 }));
  await assert.rejects(request, (error) => APICallError.isInstance(error) && /enough/.test(error.message));
});
