// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The kinds of the catalogue, and what is shown of each.
import type { ComponentChildren } from 'preact';
import type { Entry } from '../../api/kinds';
import { count, words } from '../../ui/format';
import type { Column } from '../../ui/table';
import { Text, oneLine } from '../../ui/text';

export interface Kind {
  id: string; // in the address; empty for the first
  resource: string;
  title: string;
  columns: Array<Column<Entry>>;
  about: (e: Entry) => string; // the text that is searched, and shown first
  builtin?: string; // the resource that has what needs no object
}

type Deep = Record<string, unknown> | undefined;
const at = (e: Entry, ...path: string[]): unknown => path.reduce<unknown>((v, k) => (v as Deep)?.[k], e.spec);
const text = (...path: string[]) => (e: Entry): ComponentChildren => <Text>{String(at(e, ...path) ?? '')}</Text>;
const size = (...path: string[]) => (e: Entry): ComponentChildren => count((at(e, ...path) as unknown[] | undefined)?.length ?? 0);
const line = (e: Entry): ComponentChildren => <bdi>{oneLine(String(e.spec.description ?? ''), 120)}</bdi>;

export const kinds: Kind[] = [
  {
    id: '', resource: 'agents', title: 'Agents', about: (e) => String(at(e, 'systemPrompt', 'inline') ?? ''),
    columns: [
      { title: 'Provider', cell: text('providerRef', 'name') },
      { title: 'Model', cell: text('model', 'name'), kind: 'minor' },
      { title: 'Tools', cell: size('tools'), kind: 'number' },
      { title: 'Skills', cell: size('skills'), kind: 'number' },
      { title: 'Delegates', cell: (e) => (at(e, 'coordination', 'enabled') ? 'yes' : ''), kind: 'minor' },
    ],
  },
  {
    id: 'providers', resource: 'providers', title: 'Providers', about: (e) => String(e.spec.baseURL ?? ''),
    columns: [
      { title: 'Protocol', cell: text('type') },
      { title: 'Model', cell: text('defaultModel'), kind: 'minor' },
      { title: 'Address', cell: (e) => <Text>{String(e.spec.baseURL || "the vendor's")}</Text>, kind: 'minor' },
      { title: 'Prices', cell: size('prices'), kind: 'number' },
    ],
  },
  { id: 'tools', resource: 'tools', builtin: 'catalogtools', title: 'Tools', about: (e) => String(e.spec.description ?? ''), columns: [{ title: 'What it does', cell: line, kind: 'minor' }] },
  {
    id: 'skills', resource: 'skills', title: 'Skills', about: (e) => String(e.spec.description ?? ''),
    columns: [{ title: 'What it is good for', cell: line, kind: 'minor' }, { title: 'Version', cell: text('version'), kind: 'minor' }],
  },
];

// state is what the controllers found out about an object.
export function state(e: Entry): { text: string; tone: string } {
  if (e.spec.builtin === true) return { text: 'Built in', tone: 'ok' };
  const s = e.status ?? {};
  const bad = (s.conditions ?? []).find((c) => (c.type === 'Ready' || c.type === 'Available') && c.status === 'False');
  if (bad) return { text: words(bad.reason ?? 'Not ready'), tone: 'bad' };
  if (s.phase === 'Error' || s.ready === false || s.available === false) return { text: 'Not ready', tone: 'bad' };
  if (s.phase === 'Ready' || s.ready || s.available || (s.conditions ?? []).some((c) => c.type === 'Ready' && c.status === 'True')) return { text: 'Ready', tone: 'ok' };
  return { text: 'Not known yet', tone: 'idle' };
}
