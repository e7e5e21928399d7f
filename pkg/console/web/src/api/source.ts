// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// JSON as it is written. JSON.parse changes large numbers and drops members of one name, so what somebody decides about is taken
// from the text.

const token = /\s*("(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s"[\]{}:,]+)/sy;

// next returns the token at a position and where it ends; an empty one at the end of the text.
function next(text: string, at: number): [string, number] {
  token.lastIndex = at;
  const found = token.exec(text)?.[1] ?? '';
  return [found, found ? token.lastIndex : text.length];
}

// end returns where the value ends that begins at a position.
function end(text: string, at: number): number {
  for (let depth = 0; ; ) {
    const [t, to] = next(text, at);
    if (t === '{' || t === '[') depth++;
    if (t === '}' || t === ']') depth--;
    at = to;
    if (!t || depth <= 0) return at;
  }
}

// members returns the members of an object in their order, with the text of each value; null if the text is no object.
export function members(text: string): Array<[name: string, value: string]> | null {
  let [t, at] = next(text, 0);
  if (t !== '{') return null;
  const found: Array<[string, string]> = [];
  for (;;) {
    [t, at] = next(text, at);
    if (t === ',') continue;
    if (!t.startsWith('"')) return found;
    const [, from] = next(text, at); // the colon
    at = end(text, from);
    found.push([JSON.parse(t) as string, text.slice(from, at).trim()]);
  }
}

// indented returns a value with a line for each of its parts. Numbers keep their digits, and texts lose the escapes that only HTML
// needs.
export function indented(text: string): string {
  let out = '';
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (let at = 0, before = ''; ; ) {
    const [t, to] = next(text, at);
    if (!t) return out;
    if (t === '}' || t === ']') {
      depth--;
      if (before !== '{' && before !== '[') out += line();
    } else if (before === '{' || before === '[' || before === ',') out += line();
    if (t === '{' || t === '[') depth++;
    out += t === ':' ? ': ' : t.startsWith('"') ? JSON.stringify(JSON.parse(t)) : t;
    before = t;
    at = to;
  }
}

// Value is a JSON value. What is neither an object, a list nor a text is as it was written.
export type Value =
  | { kind: 'object'; members: Array<[name: string, value: Value]> }
  | { kind: 'list'; items: Value[] }
  | { kind: 'text' | 'other'; text: string };

const deepest = 100; // levels

// parsed returns the object or list that a text is, and null for any other text.
export function parsed(text: string): Value | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
    return read(text, 0, 0)[0];
  } catch {
    return null; // not JSON, or deeper than anybody reads
  }
}

// read returns the value that begins at a position of a text that is JSON, and where it ends.
function read(text: string, from: number, depth: number): [Value, number] {
  if (depth > deepest) throw new RangeError();
  let [t, at] = next(text, from);
  if (t.startsWith('"')) return [{ kind: 'text', text: JSON.parse(t) as string }, at];
  if (t !== '{' && t !== '[') return [{ kind: 'other', text: t }, at];
  const found: Value = t === '{' ? { kind: 'object', members: [] } : { kind: 'list', items: [] };
  for (;;) {
    const [t, to] = next(text, at);
    if (t === '}' || t === ']') return [found, to];
    if (t === ',') at = to;
    else if (found.kind === 'object') {
      const [value, end] = read(text, next(text, to)[1], depth + 1); // after the colon
      found.members.push([JSON.parse(t) as string, value]);
      at = end;
    } else if (found.kind === 'list') {
      const [value, end] = read(text, at, depth + 1);
      found.items.push(value);
      at = end;
    }
  }
}

// readable returns JSON as members in lines, in which the lines of a text are lines; any other text as it is.
export function readable(text: string): string {
  const value = parsed(text);
  return value ? lines(value) : text;
}

export function lines(v: Value): string {
  return line(v, '').trim();
}

function line(v: Value, indent: string): string {
  const inner = `${indent}  `;
  if (v.kind === 'list') return v.items.length === 0 ? ' []' : v.items.map((x) => `\n${indent}-${line(x, inner)}`).join('');
  if (v.kind === 'object') return v.members.length === 0 ? ' {}' : v.members.map(([k, x]) => `\n${indent}${k}:${line(x, inner)}`).join('');
  if (v.kind === 'text' && v.text.includes('\n')) return `\n${v.text.replace(/\n$/, '').split('\n').map((l) => indent + l).join('\n')}`;
  return ` ${v.text}`;
}
