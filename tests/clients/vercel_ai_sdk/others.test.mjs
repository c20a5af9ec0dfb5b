// Plain text, streams, fields of this server, completions, embeddings, errors.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { APICallError, RetryError, cosineSimilarity, embed, embedMany, generateText, streamText } from 'ai';

import { MODEL, all, options, provider } from './support.mjs';

test('a text with its usage', async () => {
  const { text, usage, finishReason } = await generateText(options({ maxOutputTokens: 4 }));
  assert.ok(text);
  assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  assert.equal(finishReason, 'length');
});

test('a stream with its usage', async () => {
  const result = streamText(options({ maxOutputTokens: 12 }));
  const parts = await all(result.textStream);
  assert.ok(parts.length > 2);
  assert.equal(parts.join(''), await result.text);
  assert.ok((await result.usage).outputTokens > 0);
});

test('a conversation', async () => {
  const messages = [
    { role: 'user', content: 'The word is heron.' },
    { role: 'assistant', content: [{ type: 'text', text: 'Yes.' }] },
    { role: 'user', content: 'Which?' },
  ];
  const { text } = await generateText({ ...options({ maxOutputTokens: 6, prompt: undefined }), messages });
  assert.ok(text);
});

test('providerOptions are fields of the request', async () => {
  const { text } = await generateText(options({ providerOptions: { constrain: { regex: '(yes|no)' } } }));
  assert.ok(['yes', 'no'].includes(text));
});

test('options of sampling', async () => {
  const { text } = await generateText(
    options({ topP: 0.9, seed: 1, presencePenalty: 0.1, frequencyPenalty: 0.1, stopSequences: ['\n'], maxOutputTokens: 6 }),
  );
  assert.ok(!text.includes('\n'));
});

test('completions', async () => {
  const model = provider().completionModel(MODEL);
  const { text } = await generateText(options({ model, prompt: 'One, two,', maxOutputTokens: 6 }));
  assert.ok(text);
});

test('embeddings', async () => {
  const model = provider().embeddingModel(MODEL);
  const { embedding } = await embed({ model, value: 'a cat', maxRetries: 0 });
  const { embeddings } = await embedMany({ model, values: ['a cat', 'Oslo'], maxRetries: 0 });
  assert.equal(embeddings.length, 2);
  assert.ok(cosineSimilarity(embedding, embeddings[0]) > 0.99);
});

test('an unknown model is not found, and is not asked for again', async () => {
  await assert.rejects(generateText(options({ model: provider()('no-such-model'), maxRetries: 2 })), (error) => {
    assert.ok(!RetryError.isInstance(error));
    return APICallError.isInstance(error) && error.statusCode === 404;
  });
});

test('a wrong key is refused', async () => {
  const model = provider({ apiKey: 'wrong' })(MODEL);
  await assert.rejects(generateText(options({ model })), (error) => error.statusCode === 401);
});
