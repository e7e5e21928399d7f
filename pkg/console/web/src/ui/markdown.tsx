// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A safe part of Markdown. Texts become elements of this page's own making; HTML in them stays text, images are not loaded,
// and a link shows where it leads.
import type { ComponentChildren } from 'preact';
import { visible } from './text';

const most = 100_000; // characters; what is longer is shown as plain text
const deepest = 6; // levels of quotes and lists

export function Markdown({ text }: { text: string }) {
  const clean = visible(text);
  if (clean.length > most) return <pre dir="auto">{clean.slice(0, most)}</pre>;
  return <div class="prose" dir="auto">{blocks(clean.split('\n'), 0)}</div>;
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)\s*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const bullet = /^( {0,3})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const rule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;

function blocks(lines: string[], depth: number): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i] ?? '';
    const open = fence.exec(line);
    if (open) {
      const close = new RegExp(`^ {0,3}${open[1]?.[0]}{${open[1]?.length},}\\s*$`);
      let end = i + 1;
      while (end < lines.length && !close.test(lines[end] ?? '')) end++;
      out.push(<pre><code>{lines.slice(i + 1, end).join('\n')}</code></pre>);
      i = end + 1;
      continue;
    }
    const width = table(lines, i);
    if (width > 0) {
      const from = i;
      for (i += 2; i < lines.length && (i - from) * width <= cells && (lines[i] ?? '').includes('|'); ) i++;
      out.push(rows(lines.slice(from, i), width));
      continue;
    }
    const head = heading.exec(line);
    if (head) {
      // The page has its own headings, so those of a text are one size and below them.
      out.push(<p class="heading"><strong>{inline(head[2] ?? '')}</strong></p>);
      i++;
      continue;
    }
    if (rule.test(line)) {
      out.push(<hr />);
      i++;
      continue;
    }
    if (/^ {0,3}>/.test(line) && depth < deepest) {
      const from = i;
      while (i < lines.length && /^ {0,3}>/.test(lines[i] ?? '')) i++;
      out.push(<blockquote>{blocks(lines.slice(from, i).map((l) => l.replace(/^ {0,3}> ?/, '')), depth + 1)}</blockquote>);
      continue;
    }
    if (bullet.test(line) && depth < deepest) {
      const [items, next] = list(lines, i);
      const content = items.map((item) => <li>{blocks(item, depth + 1)}</li>);
      out.push(/\d/.test(bullet.exec(line)?.[2] ?? '') ? <ol start={parseInt(bullet.exec(line)?.[2] ?? '1', 10)}>{content}</ol> : <ul>{content}</ul>);
      i = next;
      continue;
    }
    if (line.trim() === '') {
      i++;
      continue;
    }
    const from = i++;
    while (i < lines.length && !starts(lines[i] ?? '') && !table(lines, i)) i++;
    out.push(<p>{inline(lines.slice(from, i).join('\n'))}</p>);
  }
  return out;
}

function starts(line: string): boolean {
  return line.trim() === '' || fence.test(line) || heading.test(line) || /^ {0,3}>/.test(line) || bullet.test(line) || rule.test(line);
}

const cells = 1000; // of a table; what comes after them is text
const columns = 20;
const ruler = /^ {0,3}\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*$/;

// split returns the cells of a row.
function split(line: string): string[] {
  return line.slice(0, 10_000).trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1').split(/(?<!\\)\|/, columns + 1).map((c) => c.trim().replaceAll('\\|', '|'));
}

// table returns how many columns the table has that begins at a line; 0 if none does.
function table(lines: string[], at: number): number {
  const [head, rule] = [lines[at] ?? '', lines[at + 1] ?? ''];
  if (!head.includes('|') || !rule.includes('-') || rule.length > 1000 || !ruler.test(rule)) return 0;
  const n = split(head).length;
  return n <= columns && n === split(rule).length ? n : 0;
}

function rows([head = '', rule = '', ...body]: string[], width: number): ComponentChildren {
  const right = split(rule).map((c) => (c.endsWith(':') ? 'number' : ''));
  const some = (line: string) => Array.from({ length: width }, (_, i) => split(line)[i] ?? '');
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead><tr>{some(head).map((c, i) => <th key={i} scope="col" class={right[i]}>{inline(c)}</th>)}</tr></thead>
        <tbody>{body.map((line, r) => <tr key={r}>{some(line).map((c, i) => <td key={i} class={right[i]}>{inline(c)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

// list returns the lines of each item of a list, and the line after it.
function list(lines: string[], at: number): [string[][], number] {
  const items: string[][] = [];
  let indent = 0;
  let i = at;
  for (; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const found = bullet.exec(line);
    if (found && (items.length === 0 || (found[1] ?? '').length < indent)) {
      indent = line.length - (found[3] ?? '').length;
      items.push([found[3] ?? '']);
    } else if (line.trim() === '') {
      if (!/^\s+\S/.test(lines[i + 1] ?? '') && !bullet.test(lines[i + 1] ?? '')) break;
      items.at(-1)?.push('');
    } else if (line.startsWith(' '.repeat(Math.min(indent, 2)))) {
      items.at(-1)?.push(line.slice(Math.min(indent, /^ */.exec(line)?.[0].length ?? 0)));
    } else break;
  }
  return [items, i];
}

// In order: code, an image, a link, an address, strong, emphasis. Each is bounded, so that no text takes long to match.
const span = /(`{1,3})([^`]{1,2000})\1|(!?)\[([^[\]\n]{0,500})\]\(<?([^\s()<>]{1,2000})>?(?:\s"[^"\n]{0,200}")?\)|(https?:\/\/[^\s<>"'`)\]]{1,2000})|\*\*((?:[^*\n]|\*[^*\n]){1,1000}?)\*\*|\*([^*\s][^*\n]{0,1000})\*|\b_([^_\s][^_\n]{0,1000})_\b/g;

function inline(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let from = 0;
  for (const m of text.matchAll(span)) {
    out.push(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[2] !== undefined) out.push(<code>{m[2]}</code>);
    else if (m[5] !== undefined) out.push(m[3] ? <span class="muted">[image{m[4] ? `: ${m[4]}` : ''}, not loaded: {m[5]}]</span> : webLink(m[5], m[4] ?? ''));
    else if (m[6] !== undefined) out.push(webLink(m[6], ''));
    else if (m[7] !== undefined) out.push(<strong>{inline(m[7])}</strong>);
    else out.push(<em>{m[8] ?? m[9]}</em>);
  }
  out.push(text.slice(from));
  return out;
}

// webLink shows the host of an address after a text that could hide it. Addresses other than of the web stay text.
export function webLink(to: string, text: string): ComponentChildren {
  let url: URL;
  try {
    url = new URL(to);
  } catch {
    return `${text} (${to})`;
  }
  if ((url.protocol !== 'https:' && url.protocol !== 'http:') || url.username) return `${text} (${to})`;
  return <a href={url.href} target="_blank" rel="noopener noreferrer nofollow">{text ? <>{text} <span class="where">({url.host})</span></> : url.href}</a>;
}
