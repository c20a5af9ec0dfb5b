// What all scenarios share: clients of the servers that the environment names, requests, and checks.

import assert from 'node:assert/strict';

import { Ollama } from 'ollama';

export const MODEL = process.env.CONSTRAIN_MODEL;

assert.ok(MODEL && process.env.OLLAMA_HOST, 'CONSTRAIN_MODEL and OLLAMA_HOST name the server to test');

const headers = { authorization: `Bearer ${process.env.OLLAMA_API_KEY}` };

export const client = new Ollama({ host: process.env.OLLAMA_HOST, headers });

export const thinker = new Ollama({ host: process.env.CONSTRAIN_THINKER_URL, headers });

export const stranger = new Ollama({ host: process.env.OLLAMA_HOST });

export const MESSAGES = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Tell me of Emma, aged 21.' },
];

export const PERSON = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 20 },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    mood: { enum: ['good', 'bad'] },
  },
  required: ['name', 'age', 'mood'],
};

export const MOVE = {
  type: 'function',
  function: {
    name: 'move',
    description: 'Moves a piece.',
    parameters: {
      type: 'object',
      properties: { to: { type: 'string', enum: ['left', 'right'] }, steps: { type: 'integer', minimum: 1, maximum: 9 } },
      required: ['to', 'steps'],
    },
  },
};

export function chat(more = {}, asked = client) {
  const { options = {}, ...others } = more;
  return asked.chat({ model: MODEL, messages: MESSAGES, ...others, options: { temperature: 0, ...options } });
}

export async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

export function requirePerson(text) {
  const person = JSON.parse(text);
  assert.deepEqual(Object.keys(person), ['name', 'age', 'mood']);
  assert.ok([...person.name].length <= 20);
  assert.ok(Number.isInteger(person.age) && person.age >= 0 && person.age <= 150);
  assert.ok(['good', 'bad'].includes(person.mood));
}

export function requireMove(call) {
  assert.equal(call.function.name, 'move');
  assert.ok(['left', 'right'].includes(call.function.arguments.to));
  assert.ok(call.function.arguments.steps >= 1 && call.function.arguments.steps <= 9);
}

export async function refusal(promise, status, message) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.name, 'ResponseError');
    assert.equal(error.status_code, status);
    assert.match(error.message, message);
    return true;
  });
}
