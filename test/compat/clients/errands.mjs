// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the scripts of this folder have in common. Each plays the same errands with its client against the server at BASE, with the
// token TOKEN and the model MODEL. "first" is the first process; "second" continues the conversation that it left in the file STATE.
// A line of JSON says what became of each step: {"step": "tools", "error": ""}.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

export const { API, AGENT, BASE, MODEL, STATE, TOKEN, TOOLS } = process.env;
export const headers = TOOLS ? { 'X-Platform-Tools': TOOLS } : {};
export const prompt = (n) => `Please do errand ${n}.`;
export const done = (n) => `Errand ${n} is done.`;
// A tool that fails for what is missing.
export const input = z.object({ name: z.string() });
export const description = 'Looks for a thing.';
export const weather = z.object({ city: z.string(), degrees: z.number() });
export const look = ({ name }) => {
  if (name === 'missing') throw new Error('there is no such thing');
  return `found ${name}`;
};

// The function of a client that leaves the errors of tools to the application.
export const lookSafely = (args) => {
  try {
    return look(args);
  } catch (e) {
    return `error: ${e.message}`;
  }
};

// What is wrong with the first usage that was reported.
let uncached = 'no usage was reported';
let reported = false;
export const cached = (tokens) => {
  if (!reported) uncached = tokens === 800 ? '' : `${tokens} tokens are reported as read from a cache, not 800`;
  reported = true;
};
export const saysDone = (n, text) => assert.ok(text?.includes(done(n)), `the model says: ${text}`);
export const isWeather = (answer) => assert.deepEqual(answer, { city: 'Bonn', degrees: 21 });
export const save = (state) => writeFileSync(STATE, JSON.stringify(state));
export const load = () => JSON.parse(readFileSync(STATE, 'utf8'));

const message = (e) => String(e?.cause?.message ?? e?.message ?? e).split('\n')[0].slice(0, 300);

// play carries out the steps of this process.
export async function play({ first, second }) {
  const steps = process.argv[2] === 'first' ? first : second;
  for (const [step, act] of Object.entries(steps)) {
    let error = '';
    try {
      await act();
    } catch (e) {
      error = message(e) || 'unknown error';
      if (process.env.VERBOSE) console.error(e);
    }
    console.log(JSON.stringify({ step, error }));
  }
  if (process.argv[2] === 'first') console.log(JSON.stringify({ step: 'cache', error: uncached }));
  process.exit(0); // a client may keep connections or timers
}
