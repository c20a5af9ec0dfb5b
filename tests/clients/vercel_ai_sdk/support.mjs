// What all scenarios share: models of the server that the environment names, schemas, and options.

import assert from 'node:assert/strict';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { z } from 'zod';

export const MODEL = process.env.CONSTRAIN_MODEL;
export const BASE_URL = process.env.OPENAI_BASE_URL;

assert.ok(MODEL && BASE_URL, 'CONSTRAIN_MODEL and OPENAI_BASE_URL name the server to test');

globalThis.AI_SDK_LOG_WARNINGS = false;

export function provider(more = {}) {
  return createOpenAICompatible({
    name: 'constrain',
    baseURL: BASE_URL,
    apiKey: process.env.OPENAI_API_KEY,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...more,
  });
}

export const model = provider()(MODEL);

export const Person = z.object({
  name: z.string().max(20),
  age: z.number().int().min(0).max(150),
  mood: z.enum(['good', 'bad']),
});

export const Plan = z.object({
  steps: z.array(z.object({ words: z.string().max(20), minutes: z.number().int().min(1).max(9) })).min(1).max(2),
  done: z.boolean(),
});

export const Optional = z.object({ name: z.string().max(20), age: z.number().int().max(150).optional() });

// Every object matches.
export const Loose = z.object({ name: z.string().optional() }).loose();

// Nothing matches its pattern.
export const Never = z.object({ word: z.string().regex(/(?=x)y/) });

// What every call has. Retries would hide errors of the server.
export function options(more = {}) {
  const prompt = 'Ada is 36 years old. Who is she?';
  return { model, prompt, temperature: 0, maxOutputTokens: 80, maxRetries: 0, ...more };
}

export async function all(parts) {
  const found = [];
  for await (const part of parts) found.push(part);
  return found;
}
