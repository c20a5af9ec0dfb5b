// Vectors, models and errors.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chat, client, MODEL, refusal, stranger } from './support.mjs';

test('texts get vectors', async () => {
  const response = await client.embed({ model: MODEL, input: ['Hello', 'you'] });
  assert.equal(response.embeddings.length, 2);
  assert.ok(response.prompt_eval_count >= 2);
  const { embedding } = await client.embeddings({ model: MODEL, prompt: 'Hello' });
  assert.deepEqual(embedding, response.embeddings[0]);
});

test('models are listed and described', async () => {
  const { models } = await client.list();
  assert.deepEqual(models.map((model) => model.name), [`${MODEL}:latest`]);
  assert.ok(models[0].size > 10_000_000);
  assert.ok(!Number.isNaN(new Date(models[0].modified_at).getTime()));
  const shown = await client.show({ model: models[0].name });
  assert.equal(shown.model_info['general.architecture'], 'llama');
  assert.deepEqual(shown.capabilities, ['completion', 'tools', 'embedding']);
  const running = await client.ps();
  assert.deepEqual(running.models.map((model) => model.digest), [models[0].digest]);
  assert.match((await client.version()).version, /^0\.\d+\.\d+$/);
});

test('models are pulled that are there', async () => {
  assert.equal((await client.pull({ model: MODEL })).status, 'success');
  const said = [];
  for await (const part of await client.pull({ model: MODEL, stream: true })) said.push(part.status);
  assert.deepEqual(said, ['success']);
});

test('models cannot be changed', async () => {
  await refusal(client.pull({ model: 'llama3.2' }), 404, /constrain serve/);
  await refusal(client.push({ model: MODEL }), 400, /sends no models/);
  await refusal(client.create({ model: 'mine', from: MODEL }), 400, /constrain serve/);
  await refusal(client.copy({ source: MODEL, destination: 'mine' }), 400, /--alias/);
  await refusal(client.delete({ model: MODEL }), 400, /deletes no models/);
});

const REFUSED = [
  ['an unknown model', { model: 'nothing' }, 404, /^model 'nothing' not found/],
  ['an image', { messages: [{ role: 'user', content: 'x', images: ['aGk='] }] }, 400, /images/],
  ['a schema that nothing matches', { format: { type: 'integer', minimum: 3, maximum: 2 } }, 400, /minimum/],
  ['an option that is not there', { options: { mirostat: 3 } }, 400, /options\.mirostat/],
  ['reasoning of a model that has none', { think: true }, 400, /does not support thinking/],
];

for (const [what, more, status, message] of REFUSED) {
  test(`refused: ${what}`, async () => {
    await refusal(chat(more), status, message);
    await refusal(chat({ ...more, stream: true }), status, message);
  });
}

test('a key is needed', async () => {
  await refusal(stranger.list(), 401, /API key/);
  await refusal(stranger.generate({ model: MODEL, prompt: 'x' }), 401, /API key/);
});
