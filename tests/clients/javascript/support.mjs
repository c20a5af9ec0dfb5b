// What all scenarios share: a client of the server that the environment names, requests, and checks of streams.

import assert from 'node:assert/strict';

import OpenAI from 'openai';
import { z } from 'zod';

export const MODEL = process.env.CONSTRAIN_MODEL;
export const BASE_URL = process.env.OPENAI_BASE_URL;

assert.ok(MODEL && BASE_URL, 'CONSTRAIN_MODEL and OPENAI_BASE_URL name the server to test');

// Retries would hide errors of the server.
export const client = new OpenAI({ maxRetries: 0, timeout: 240_000 });

export const AUTHORIZED = { authorization: `Bearer ${client.apiKey}` };

export const MESSAGES = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Tell me of Emma, aged 21.' },
];

export const Person = z.object({
  name: z.string().max(20),
  age: z.number().int().min(0).max(150),
  mood: z.enum(['good', 'bad']),
});

export const Move = z.object({ to: z.enum(['left', 'right']), steps: z.number().int().min(1).max(9) });

export const MOVE = {
  type: 'function',
  function: {
    name: 'move',
    description: 'Moves a piece.',
    parameters: {
      type: 'object',
      properties: { to: { type: 'string', enum: ['left', 'right'] }, steps: { type: 'integer', minimum: 1, maximum: 9 } },
      required: ['to', 'steps'],
      additionalProperties: false,
    },
  },
};

export const WAIT = {
  type: 'function',
  function: { name: 'wait', parameters: { type: 'object', properties: {}, additionalProperties: false } },
};

// The body of a chat completion that is the same whenever it is asked for alone.
export function chat(more = {}) {
  return { model: MODEL, messages: MESSAGES, temperature: 0, max_tokens: 200, ...more };
}

export function response(more = {}) {
  return { model: MODEL, input: 'Tell me of Emma, aged 21.', temperature: 0, max_output_tokens: 200, ...more };
}

export async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

// The error of a request that is refused, checked for the shape of OpenAI's errors.
export async function refusal(request, kind, expected = {}) {
  let caught;
  try {
    await request;
  } catch (error) {
    caught = error;
  }
  assert.ok(caught instanceof kind, `expected ${kind.name}, got ${caught}`);
  assert.ok(caught.error.message.length > 0);
  for (const [name, value] of Object.entries(expected)) {
    if (value instanceof RegExp) assert.match(String(caught[name]), value);
    else assert.equal(caught[name], value);
  }
  return caught;
}
