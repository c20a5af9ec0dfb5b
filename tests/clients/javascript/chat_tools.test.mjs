// Tools of chat completions: functions, custom tools, every tool_choice, conversations with results, runTools.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { MESSAGES, MOVE, Move, Person, WAIT, chat, client, refusal } from './support.mjs';

const ask = async (more) => (await client.chat.completions.create(chat(more))).choices[0];
const lark = (definition) => ({ type: 'grammar', grammar: { syntax: 'lark', definition } });
const regex = (definition) => ({ type: 'grammar', grammar: { syntax: 'regex', definition } });
const custom = (name, format) => ({ type: 'custom', custom: { name, ...(format && { format }) } });
const named = (name) => ({ type: 'function', function: { name } });

function checkCalls({ message, finish_reason }) {
  assert.equal(finish_reason, 'tool_calls');
  assert.ok(message.tool_calls.length >= 1);
  assert.equal(new Set(message.tool_calls.map((call) => call.id)).size, message.tool_calls.length);
  for (const call of message.tool_calls) {
    assert.match(call.id, /^call_/);
    assert.equal(call.type, 'function');
    if (call.function.name === 'move') Move.parse(JSON.parse(call.function.arguments));
    else assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ['wait', {}]);
  }
}

test('tool_choice required: calls that match', async () => {
  const choice = await ask({ tools: [MOVE, WAIT], tool_choice: 'required' });
  checkCalls(choice);
  assert.equal(choice.message.content, null);
});

test('tool_choice by name: that tool', async () => {
  const choice = await ask({ tools: [MOVE, WAIT], tool_choice: named('wait') });
  checkCalls(choice);
  assert.deepEqual([...new Set(choice.message.tool_calls.map((call) => call.function.name))], ['wait']);
});

test('zodFunction: parsed arguments', async () => {
  const tool = zodFunction({ name: 'move', description: 'Moves a piece.', parameters: Move });
  const completion = await client.chat.completions.parse(chat({ tools: [tool], tool_choice: 'required' }));
  for (const call of completion.choices[0].message.tool_calls) {
    assert.deepEqual(Move.parse(call.function.parsed_arguments), JSON.parse(call.function.arguments));
  }
});

test('zodFunction and zodResponseFormat in one request', async () => {
  const asked = chat({
    tools: [zodFunction({ name: 'move', parameters: Move })],
    response_format: zodResponseFormat(Person, 'person'),
  });
  const called = await client.chat.completions.parse({ ...asked, tool_choice: 'required' });
  Move.parse(called.choices[0].message.tool_calls[0].function.parsed_arguments);
  const said = await client.chat.completions.parse({ ...asked, tool_choice: 'none' });
  Person.parse(said.choices[0].message.parsed);
  const { message } = (await client.chat.completions.parse(asked)).choices[0];
  if (message.tool_calls?.length) Move.parse(message.tool_calls[0].function.parsed_arguments);
  else Person.parse(message.parsed);
});

test('calls and their results can be sent back', async () => {
  const { message } = await ask({ tools: [MOVE], tool_choice: 'required' });
  const results = message.tool_calls.map((call, index) => ({
    role: 'tool',
    tool_call_id: call.id,
    content: index ? 'done' : [{ type: 'text', text: 'done' }],
  }));
  const messages = [...MESSAGES, message, ...results];
  const choice = await ask({ messages, tools: [MOVE], tool_choice: 'none', max_tokens: 6 });
  assert.equal(typeof choice.message.content, 'string');
});

const CUSTOM = {
  'a lark grammar': [lark('start: "hi " NAME\nNAME: /[a-z]{2,5}/'), /^hi [a-z]{2,5}$/],
  'a regex': [regex('[A-Z]{2}-[0-9]{3}'), /^[A-Z]{2}-[0-9]{3}$/],
  'any text': [{ type: 'text' }, /^[^]*$/],
  'no format': [undefined, /^[^]*$/],
};

for (const [what, [format, pattern]] of Object.entries(CUSTOM)) {
  test(`a custom tool of ${what}`, async () => {
    const tool_choice = { type: 'custom', custom: { name: 'write' } };
    const { message, finish_reason } = await ask({ tools: [custom('write', format)], tool_choice, max_tokens: 60 });
    assert.equal(finish_reason, 'tool_calls');
    for (const call of message.tool_calls) {
      assert.equal(call.type, 'custom');
      assert.equal(call.custom.name, 'write');
      assert.match(call.custom.input, pattern);
    }
  });
}

test('runTools calls functions and sends their results', async () => {
  const seen = [];
  const runner = client.chat.completions.runTools(
    chat({
      tools: [
        zodFunction({
          name: 'move',
          parameters: Move,
          function: (move) => {
            seen.push(move);
            return { moved: move.steps };
          },
        }),
      ],
      tool_choice: named('move'),
    }),
  );
  const result = await runner.finalFunctionToolCallResult();
  seen.forEach((move) => Move.parse(move));
  assert.ok(seen.length >= 1);
  assert.equal(result, JSON.stringify({ moved: seen.at(-1).steps }));
  assert.ok((await runner.totalUsage()).completion_tokens > 0);
});

test('runTools goes on for as many requests as it may', async () => {
  let calls = 0;
  const runner = client.chat.completions
    .runTools(
      chat({
        tools: [
          {
            type: 'function',
            function: {
              name: 'lookup',
              parameters: { type: 'object', properties: { word: { type: 'string', maxLength: 8 } } },
              parse: JSON.parse,
              function: () => {
                calls += 1;
                return 'nothing';
              },
            },
          },
        ],
        tool_choice: 'required',
        parallel_tool_calls: false,
        max_tokens: 60,
      }),
      { maxChatCompletions: 2 },
    )
    .on('message', (message) => assert.ok(['assistant', 'tool'].includes(message.role)));
  await runner.done();
  assert.equal(calls, 2);
  assert.equal(runner.allChatCompletions().length, 2);
});

const REFUSED = [
  ['the name of no tool', { tools: [MOVE], tool_choice: named('jump') }, { param: 'tool_choice' }],
  [
    'a strict function that is open',
    { tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object' } } }] },
    { param: 'tools[0].function.parameters', code: 'invalid_function_parameters', message: /function 'f'/ },
  ],
  [
    'a grammar with an undefined name',
    { tools: [custom('g', lark('start: missing'))] },
    { code: 'invalid_grammar', param: /^tools\[0\]/, message: /line 1/ },
  ],
];

for (const [what, more, expected] of REFUSED) {
  test(`refused: ${what}`, async () => {
    const request = client.chat.completions.create(chat(more));
    await refusal(request, OpenAI.BadRequestError, { type: 'invalid_request_error', ...expected });
  });
}
