// The configuration of the page, read by Continue's own reader, and what each of its models is asked with.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parseConfigYaml } from '@continuedev/config-yaml';
import { constructLlmApi } from '@continuedev/openai-adapters';

const { CONSTRAIN_DOCS, OPENAI_BASE_URL, OPENAI_API_KEY } = process.env;
assert.ok(CONSTRAIN_DOCS && OPENAI_BASE_URL, 'CONSTRAIN_DOCS and OPENAI_BASE_URL say where the page and the server are');

const page = readFileSync(join(CONSTRAIN_DOCS, 'recipes', 'continue.md'), 'utf8');
export const [, text] = page.match(/^```yaml\n(.*?)^```/ms);

export const config = parseConfigYaml(text.replaceAll('http://127.0.0.1:8080/v1', OPENAI_BASE_URL));

export function modelFor(role) {
  const [model, ...more] = config.models.filter((each) => each.roles.includes(role));
  assert.equal(more.length, 0);
  return model;
}

export function apiFor(role, provider = 'openai') {
  const model = modelFor(role);
  assert.equal(model.provider, 'openai');
  return constructLlmApi({ ...model, provider, apiBase: `${model.apiBase}/`, apiKey: OPENAI_API_KEY });
}

export const signal = new AbortController().signal;

export async function all(parts) {
  const found = [];
  for await (const part of parts) found.push(part);
  return found;
}
