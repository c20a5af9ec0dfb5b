// Tools: choices, results, steps, streams, and what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { APICallError, Output, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

import { Never, Person, all, options } from './support.mjs';

const Weather = z.object({ city: z.enum(['Oslo', 'Rome']), days: z.number().int().min(1).max(9) });

const weather = tool({
  description: 'Tells the weather of the next days.',
  inputSchema: Weather,
  execute: async ({ city, days }) => `sun in ${city} for ${days} day(s)`,
});
const note = tool({ description: 'Notes words.', inputSchema: z.object({ words: z.string().max(9) }) });

const prompt = 'What will the weather be in Rome?';

function check(calls, ...names) {
  assert.ok(calls.length >= 1);
  for (const call of calls) {
    assert.ok(names.includes(call.toolName));
    assert.ok(!call.invalid);
    if (call.toolName === 'weather') Weather.parse(call.input);
  }
}

test('toolChoice required: calls that match, and their results', async () => {
  const { toolCalls, finishReason } = await generateText(
    options({ prompt, tools: { weather, note }, toolChoice: 'required' }),
  );
  check(toolCalls, 'weather', 'note');
  assert.equal(finishReason, 'tool-calls');
});

test('toolChoice by name: that tool, executed', async () => {
  const { toolCalls, toolResults } = await generateText(
    options({ prompt, tools: { weather, note }, toolChoice: { type: 'tool', toolName: 'weather' } }),
  );
  check(toolCalls, 'weather');
  toolResults.forEach((result) => assert.match(result.output, /^sun in (Oslo|Rome) for [1-9]/));
});

test('toolChoice none: text', async () => {
  const { toolCalls, text } = await generateText(
    options({ prompt, tools: { weather }, toolChoice: 'none', maxOutputTokens: 8 }),
  );
  assert.equal(toolCalls.length, 0);
  assert.ok(text);
});

test('toolChoice auto: text, or calls that match', async () => {
  const { toolCalls, text } = await generateText(options({ prompt, tools: { weather } }));
  if (toolCalls.length) check(toolCalls, 'weather');
  else assert.ok(text);
});

test('steps: results are sent back', async () => {
  const { steps } = await generateText(
    options({
      prompt,
      tools: { weather },
      stopWhen: isStepCount(2),
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber ? 'none' : 'required' }),
    }),
  );
  assert.equal(steps.length, 2);
  check(steps[0].toolCalls, 'weather');
  assert.ok(steps[1].text);
});

test('streamText: calls come in parts', async () => {
  const result = streamText(options({ prompt, tools: { weather }, toolChoice: 'required' }));
  const parts = await all(result.fullStream);
  assert.ok(parts.filter((part) => part.type === 'tool-input-delta').length > 1);
  check(await result.toolCalls, 'weather');
});

test('tools and an output in one request: calls, or JSON', async () => {
  const result = await generateText(
    options({ prompt, tools: { note }, output: Output.object({ schema: Person }), toolChoice: 'none' }),
  );
  Person.parse(result.output);
});

test('refused: parameters that nothing matches', async () => {
  const never = tool({ inputSchema: Never });
  await assert.rejects(
    generateText(options({ prompt, tools: { never } })),
    (error) => APICallError.isInstance(error) && error.statusCode === 400 && /never/.test(error.message),
  );
});
