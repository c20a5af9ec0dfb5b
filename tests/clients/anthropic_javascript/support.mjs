// What all scenarios share: a client of the server that the environment names, requests, and checks of calls.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';
import { z } from 'zod';

export const MODEL = process.env.CONSTRAIN_MODEL;

assert.ok(MODEL && process.env.ANTHROPIC_BASE_URL, 'CONSTRAIN_MODEL and ANTHROPIC_BASE_URL name the server to test');

// Retries would hide errors of the server.
export const client = new Anthropic({ maxRetries: 0, timeout: 240_000 });

export const MESSAGES = [{ role: 'user', content: 'Tell me of Emma, aged 21.' }];

export const Person = z.object({
  name: z.string().max(20),
  age: z.number().int().min(0).max(150),
  mood: z.enum(['good', 'bad']),
});

export const Move = z.strictObject({ to: z.enum(['left', 'right']), steps: z.number().int().min(1).max(9) });

export const MOVE = {
  name: 'move',
  description: 'Moves a piece.',
  input_schema: {
    type: 'object',
    properties: { to: { type: 'string', enum: ['left', 'right'] }, steps: { type: 'integer', minimum: 1, maximum: 9 } },
    required: ['to', 'steps'],
    additionalProperties: false,
  },
};

export const WAIT = { name: 'wait', input_schema: { type: 'object', properties: {} } };

// The body of a request that has the same answer whenever it is asked alone.
export function body(more = {}) {
  return { model: MODEL, max_tokens: 150, messages: MESSAGES, temperature: 0, ...more };
}

// The calls of a message, each checked by its schema.
export function callsOf({ content, stop_reason }) {
  const calls = content.filter(({ type }) => type === 'tool_use');
  assert.equal(stop_reason === 'tool_use', calls.length > 0);
  assert.equal(new Set(calls.map(({ id }) => id)).size, calls.length);
  for (const { name, input } of calls) {
    if (name === 'move') Move.parse(input);
    else assert.deepEqual([name, input], ['wait', {}]);
  }
  return calls;
}

// The error of a request that is refused, checked for the shape of Anthropic's errors.
export async function refusal(request, kind, type) {
  let caught;
  try {
    await request;
  } catch (error) {
    caught = error;
  }
  assert.ok(caught instanceof kind, `expected ${kind.name}, got ${caught}`);
  assert.equal(caught.error.type, 'error');
  assert.equal(caught.error.error.type, type);
  assert.ok(caught.error.error.message.length > 0);
  assert.equal(caught.error.request_id, caught.requestID);
  return caught.error.error.message;
}
