// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What two lists have in common, in their order.

// Run is a part of both lists (same), or of the first (del) or the second (ins) alone. It begins at a in the first and at b in the
// second, and has n items.
export interface Run {
  kind: 'same' | 'del' | 'ins';
  a: number;
  b: number;
  n: number;
}

const most = 1000; // items that differ; what differs more is one change as a whole

// diff returns a shortest way from a to b, by Myers: An O(ND) Difference Algorithm and Its Variations (1986).
export function diff(a: readonly string[], b: readonly string[]): Run[] {
  const ids = new Map<string, number>();
  const id = (s: string) => ids.get(s) ?? (ids.set(s, ids.size), ids.size - 1);
  const [as, bs] = [a.map(id), b.map(id)];
  let head = 0;
  while (head < a.length && head < b.length && as[head] === bs[head]) head++;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - head && as[a.length - 1 - tail] === bs[b.length - 1 - tail]) tail++;
  const runs: Run[] = [];
  let [x, y] = [0, 0];
  const add = (kind: Run['kind'], n: number) => {
    if (n === 0) return;
    const last = runs.at(-1);
    if (last?.kind === kind) last.n += n;
    else runs.push({ kind, a: x, b: y, n });
    if (kind !== 'ins') x += n;
    if (kind !== 'del') y += n;
  };
  add('same', head);
  for (const [kind, n] of middle(as.slice(head, a.length - tail), bs.slice(head, b.length - tail))) add(kind, n);
  add('same', tail);
  return runs;
}

function middle(a: number[], b: number[]): Array<[Run['kind'], number]> {
  const [n, m] = [a.length, b.length];
  const top = Math.min(n + m, most);
  const v = new Int32Array(2 * top + 3);
  const at = (k: number) => v[k + top + 1] ?? 0;
  const down = (k: number, d: number) => k === -d || (k !== d && at(k - 1) < at(k + 1));
  const ways: Int32Array[] = [];
  for (let d = 0; d <= top; d++) {
    ways.push(v.slice());
    for (let k = -d; k <= d; k += 2) {
      let x = down(k, d) ? at(k + 1) : at(k - 1) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      v[k + top + 1] = x;
      if (x >= n && x - k >= m) return back(d);
    }
  }
  return [['del', n], ['ins', m]];

  function back(d: number): Array<[Run['kind'], number]> {
    const steps: Array<[Run['kind'], number]> = [];
    let [x, y] = [n, m];
    for (; d >= 0; d--) {
      v.set(ways[d] ?? v);
      const k = x - y;
      const into = down(k, d);
      const before = into ? k + 1 : k - 1;
      const from = d === 0 ? 0 : into ? at(before) : at(before) + 1; // where the diagonal begins
      steps.push(['same', x - from]);
      if (d > 0) steps.push([into ? 'ins' : 'del', 1]);
      [x, y] = d === 0 ? [0, 0] : [at(before), at(before) - before];
    }
    return steps.reverse();
  }
}
