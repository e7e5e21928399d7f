// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A text in the form in which it is read best: an image, changes of files, JSON that folds, code with its lines counted. All of them
// are elements of the page's own making with texts in them.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { isPatch } from '../api/patch';
import { lines, parsed, type Value } from '../api/source';
import { Copy } from './copy';
import { bytes, count } from './format';
import { Long } from './long';
import { Patch } from './patch';
import { checked, picture, type Picture } from './picture';
import { Text, visible } from './text';

interface Props {
  text: string;
  label: string; // what the text is, such as "the result"
  code?: string | undefined; // the language of a text that is code; empty if it is not known
  depth?: number; // how many forms it is in
}

const most = 200_000; // characters; what is longer is shown as it was written
const deepest = 4;

export function Form({ text, label, code, depth = 0 }: Props) {
  const raw = useSignal(false);
  const [what, shown] = text.length > most && !text.startsWith('data:') ? ['', null] : form({ text, label, code, depth });
  return (
    <div class={shown ? 'form' : 'form plain'}>
      <div class="over">
        {what && <span class="muted small">{what}</span>}
        {shown && <button type="button" class="quiet small" aria-label={`As it was written: ${label}`} aria-pressed={raw.value} onClick={() => (raw.value = !raw.value)}>As it was written</button>}
        <Copy text={text} label={label} />
      </div>
      {shown && !raw.value ? shown : <Long text={text} label={label} />}
    </div>
  );
}

// form returns the name of a form and the text in it; no name and nothing for a text that has none.
function form({ text, label, code, depth = 0 }: Props): [string, ComponentChildren] {
  const image = picture(text);
  if (image) return ['', <Image of={image} />];
  if (isPatch(text)) return ['Changes', <Patch text={text} label={label} />];
  const value = depth < deepest ? parsed(text) : null;
  if (value) return ['JSON', sizeOf(value) > mostValues ? <Long text={lines(value)} label={label} /> : <div class="json"><Values of={value} depth={depth} /></div>];
  if (code !== undefined || text.startsWith('#!')) return [code ? `Code, ${visible(code)}` : 'Code', <Code text={text} label={label} />];
  return ['', null];
}

function Image({ of: { src, type, bytes: n, width, height } }: { of: Picture }) {
  return (
    <figure class="picture">
      <img src={src} width={width} height={height} alt={`An image that was said here, ${width} by ${height} pixels`} />
      <figcaption class="muted small">{type}, {width} × {height}, {bytes(n)}</figcaption>
    </figure>
  );
}

function Code({ text, label }: { text: string; label: string }) {
  const all = text.replace(/\n$/, '').split('\n');
  return (
    <div class="code" tabIndex={0} role="group" aria-label={label}>
      <pre class="numbers" aria-hidden="true">{all.map((_, i) => i + 1).join('\n')}</pre>
      <pre dir="auto">{visible(all.join('\n'))}</pre>
    </div>
  );
}

const mostValues = 250; // that are shown as elements
const short = 200; // characters of a text in a line

const sizeOf = (v: Value): number => (v.kind === 'object' ? v.members.reduce((n, [, x]) => n + sizeOf(x), 1) : v.kind === 'list' ? v.items.reduce((n, x) => n + sizeOf(x), 1) : 1);

function Values({ of, depth }: { of: Value; depth: number }) {
  if (of.kind === 'list') return <>{of.items.map((v, i) => <Member key={i} name="-" value={v} depth={depth} />)}</>;
  if (of.kind !== 'object') return null;
  const image = pictureOf(of);
  return (
    <>
      {image && <Image of={image} />}
      {of.members.map(([name, v], i) => <Member key={i} name={`${name}:`} value={image && v.kind === 'text' && v.text.length > short ? { kind: 'other', text: '(the image)' } : v} depth={depth} code={codeOf(name, of)} />)}
    </>
  );
}

function Member({ name, value, depth, code }: { name: string; value: Value; depth: number; code?: string | undefined }) {
  const key = <span class="key-name"><Text>{name}</Text></span>;
  if (value.kind === 'object' || value.kind === 'list') {
    const n = value.kind === 'object' ? value.members.length : value.items.length;
    if (n === 0) return <div>{key} {value.kind === 'object' ? '{}' : '[]'}</div>;
    return (
      <details open>
        <summary>{key} <span class="muted small">{count(n)} {value.kind === 'list' ? (n === 1 ? 'item' : 'items') : n === 1 ? 'member' : 'members'}</span></summary>
        <div class="in"><Values of={value} depth={depth} /></div>
      </details>
    );
  }
  if (value.kind === 'other' || (value.text.length <= short && !value.text.trimEnd().includes('\n') && !picture(value.text))) return <div>{key} <Text>{value.text}</Text></div>;
  return (
    <details open>
      <summary>{key} <span class="muted small">{count(value.text.replace(/\n$/, '').split('\n').length)} lines</span></summary>
      <div class="in"><Form text={value.text} label={name.replace(/:$/, '')} code={code} depth={depth + 1} /></div>
    </details>
  );
}

const codeNames = /^(code|script|source|program|contents?|command|query|sql|file_text|old_str|new_str)$/i;

// codeOf returns the language of a member that is code, as far as the other members say it.
function codeOf(name: string, of: Value & { kind: 'object' }): string | undefined {
  if (!codeNames.test(name)) return undefined;
  const text = (names: RegExp) => of.members.map(([n, v]) => (names.test(n) && v.kind === 'text' && v.text.length < 300 ? v.text : '')).find(Boolean) ?? '';
  return text(/^(language|lang)$/i).slice(0, 30) || (/\.(\w{1,10})$/.exec(text(/^(path|file|file_?name)$/i))?.[1] ?? '');
}

// pictureOf returns the image that an object has in the form of MCP or of a vendor: its type, and its content in Base64.
function pictureOf(of: Value & { kind: 'object' }): Picture | null {
  const text = (names: RegExp) => of.members.map(([n, v]) => (names.test(n) && v.kind === 'text' ? v.text : '')).find(Boolean) ?? '';
  const type = text(/^(mimeType|mediaType|media_type|mime_type)$/);
  return type.startsWith('image/') ? checked(type, text(/^(data|blob)$/)) : null;
}
