// What Continue makes of the configuration: it reads it, chats with tools, edits, completes code and embeds.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { configYamlSchema } from '@continuedev/config-yaml';
import { parse } from 'yaml';

import { all, apiFor, config, modelFor, signal, text } from './support.mjs';

const READ_FILE = {
  type: 'function',
  function: {
    name: 'read_file',
    description: 'Reads a file of the project.',
    parameters: {
      type: 'object',
      required: ['filepath'],
      properties: { filepath: { type: 'string', description: 'Path of the file', maxLength: 30 } },
    },
  },
};
const RUN = {
  type: 'function',
  function: {
    name: 'run_terminal_command',
    description: 'Runs a command.',
    parameters: {
      type: 'object',
      required: ['command'],
      properties: { command: { type: 'string', maxLength: 30 }, waitForCompletion: { type: 'boolean' } },
    },
  },
};

// Stop texts of completions of code: those of the template, of all languages, of the language.
const STOPS = ['<fim_prefix>', '<fim_suffix>', '<fim_middle>', '<|endoftext|>', '\n\n', '\r\n\r\n', '/src/', '```', '\ndef'];

const chat = (more) => {
  const { model, defaultCompletionOptions } = modelFor('chat');
  const messages = [
    { role: 'system', content: 'You are a coding assistant.' },
    { role: 'user', content: [{ type: 'text', text: 'What does main.py do?' }] },
  ];
  return { model, messages, max_tokens: Math.min(60, defaultCompletionOptions.maxTokens), temperature: 0, ...more };
};

// The calls of a stream, put together.
function callsOf(parts) {
  const calls = [];
  for (const { choices } of parts) {
    for (const { index, id, function: part } of choices[0]?.delta.tool_calls ?? []) {
      calls[index] ??= { id, name: part.name, arguments: '' };
      calls[index].arguments += part.arguments ?? '';
    }
  }
  return calls;
}

test('every key is one that Continue knows', () => {
  assert.deepEqual(configYamlSchema.parse(parse(text)), parse(text));
  assert.equal(config.schema, 'v1');
});

test('every role has one model, which the server has', async () => {
  for (const role of ['chat', 'edit', 'apply', 'autocomplete', 'embed']) {
    const names = (await apiFor(role).list()).map((model) => model.id);
    assert.ok(names.includes(modelFor(role).model));
  }
});

test('chat: a stream, with its usage at the end', async () => {
  const parts = await all(apiFor('chat').chatCompletionStream(chat({ stream: true, max_tokens: 12 }), signal));
  assert.ok(parts.map(({ choices }) => choices[0]?.delta.content ?? '').join(''));
  assert.ok(parts.at(-1).usage.completion_tokens > 0);
});

test('chat without a stream', async () => {
  const { choices } = await apiFor('chat').chatCompletionNonStream(chat({ max_tokens: 8 }), signal);
  assert.ok(choices[0].message.content);
});

test('agent: the calls of a stream match, whether forced or not', async () => {
  assert.ok(modelFor('chat').capabilities.includes('tool_use'));
  for (const tool_choice of [undefined, 'required', { type: 'function', function: { name: 'read_file' } }]) {
    const body = chat({ stream: true, tools: [READ_FILE, RUN], tool_choice });
    const parts = await all(apiFor('chat').chatCompletionStream(body, signal));
    const calls = callsOf(parts);
    if (tool_choice) assert.ok(calls.length >= 1);
    for (const call of calls) {
      const given = JSON.parse(call.arguments);
      if (call.name === 'read_file') assert.equal(typeof given.filepath, 'string');
      else assert.equal(typeof given.command, 'string');
    }
  }
});

test('agent: results are sent back', async () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'read_file', arguments: '{"filepath": "main.py"}' } };
  const messages = [
    ...chat().messages,
    { role: 'assistant', content: ' ', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: 'print(1)' },
  ];
  const body = chat({ messages, tools: [READ_FILE, RUN], stream: true, max_tokens: 20 });
  const parts = await all(apiFor('chat').chatCompletionStream(body, signal));
  assert.ok(parts.length > 1);
});

test('the provider anthropic asks /v1/messages, with the same tools', async () => {
  const api = apiFor('chat', 'anthropic');
  const body = chat({ stream: true, tools: [READ_FILE, RUN], tool_choice: 'required' });
  const calls = callsOf(await all(api.chatCompletionStream(body, signal)));
  for (const call of calls) assert.equal(typeof JSON.parse(call.arguments), 'object');
  const parts = await all(api.chatCompletionStream(chat({ stream: true, max_tokens: 12 }), signal));
  assert.ok(parts.map(({ choices }) => choices[0]?.delta.content ?? '').join(''));
});

test('edit: a chat about the selected code', async () => {
  const messages = [{ role: 'user', content: 'Rewrite this code:\n```python\nprint( 1 )\n```' }];
  const body = { ...chat({ messages, max_tokens: 12, stream: true }), model: modelFor('edit').model };
  assert.ok((await all(apiFor('edit').chatCompletionStream(body, signal))).length > 1);
});

test('autocomplete: a stream of what follows the prompt', async () => {
  const { model, promptTemplates, defaultCompletionOptions } = modelFor('autocomplete');
  const around = { prefix: 'def add(a, b):\n    return ', suffix: '\n' };
  const prompt = promptTemplates.autocomplete.replace(/{{{(\w+)}}}/g, (_, name) => around[name]);
  const more = { stop: STOPS, max_tokens: defaultCompletionOptions.maxTokens, temperature: 0.01 };
  const body = { model, prompt, stream: true, ...more };
  const parts = await all(apiFor('autocomplete').completionStream(body, signal));
  assert.ok(parts.map(({ choices }) => choices[0]?.text ?? '').join(''));
});

test('autocomplete: a suffix is refused, not ignored', async () => {
  const { model } = modelFor('autocomplete');
  const body = { model, prompt: 'a', suffix: 'b', stream: true, max_tokens: 4 };
  await assert.rejects(all(apiFor('autocomplete').completionStream(body, signal)), /suffix/);
});

test('embed: vectors of one length', async () => {
  const { model, embedOptions } = modelFor('embed');
  const input = ['def add(a, b):', 'return a + b'].slice(0, embedOptions.maxBatchSize);
  const { data } = await apiFor('embed').embed({ model, input });
  assert.equal(data.length, 2);
  assert.equal(data[0].embedding.length, data[1].embedding.length);
});
