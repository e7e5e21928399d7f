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
