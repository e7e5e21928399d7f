// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the model was asked at each request of a run, and what differs between two of them.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useLoad } from '../../api/load';
import { may } from '../../api/may';
import { allRecorded, recorded, requestTypes, type Entry, type Part, type Recorded as Row } from '../../api/recording';
import { diff } from '../../api/diff';
import { readable } from '../../api/source';
import type { Task } from '../../api/types';
import { useKeys } from '../../keys';
import { href, location, set } from '../../router';
import { count, words } from '../../ui/format';
import { Difference } from '../../ui/patch';
import { ended } from '../../ui/phase';
import { Conversation, Recorded, Turn, titleOf } from '../../ui/recorded';
import { Empty, Failure, Loading, Notice } from '../../ui/states';
import { useSteps } from '../../ui/steps';
import { Text } from '../../ui/text';
import { RunSearch } from './search';

const every = 3000; // ms between two looks at a run that goes on

export function RunRequests({ name, task }: { name: string; task: Task | undefined }) {
  const allowed = may('get', 'tasks/recording');
  const known = useRef<{ of: string; rows: Row[] }>({ of: '', rows: [] });
  const of = `${name}/${task?.metadata.uid}`;
  const list = useLoad(allowed && task ? `${of}/${task.status?.phase}` : '', async (signal) => {
    const before = known.current.of === of ? known.current.rows : [];
    const rows = [...before, ...(await allRecorded(name, before.at(-1)?.seq ?? 0, signal, requestTypes))];
    if (!signal.aborted) known.current = { of, rows };
    return rows;
  }, task && !ended(task.status?.phase) ? every : 0, of);
  if (allowed === false) return <Empty>What models were asked and what they answered is recorded for those who may read it. Your role does not permit it (get tasks/recording).</Empty>;
  const rows = list.data.value;
  if (!rows) return list.error.value ? <Failure error={list.error.value} retry={list.reload} /> : <Loading what="the requests" />;
  const requests = rows.filter((r) => r.type === 'ModelRequestStarted');
  if (rows.length === 0) return <Empty>Nothing is recorded of this run.</Empty>;
  return <><Notice error={list.error.value} /><Requests name={name} rows={rows} requests={requests} /></>;
}

function Requests({ name, rows, requests }: { name: string; rows: Row[]; requests: Row[] }) {
  const query = location.value.query;
  const find = (key: string) => requests.findIndex((r) => r.seq === Number(query.get(key)));
  const at = find('at') < 0 ? requests.length - 1 : find('at');
  const beside = find('with');
  const field = useRef<HTMLInputElement>(null);
  const show = (i: number) => requests.length > 0 && set({ at: String(requests[Math.min(requests.length - 1, Math.max(0, i))]?.seq) });
  const compare = (i: number) => requests.length > 0 && set({ at: String(requests[at]?.seq), with: requests[i] && i !== at ? String(requests[i].seq) : '' });
  useKeys([
    { key: 'l', label: 'Next request', run: () => show(at + 1) },
    { key: 'h', label: 'Request before', run: () => show(at - 1) },
    { key: '/', label: 'Search what was said', run: () => field.current?.focus() },
    { key: 'd', label: 'What is new since the request before, or all of it', run: () => compare(beside >= 0 ? -1 : at - 1) },
  ]);
  const box = useSteps<HTMLDivElement>('message');
  const [request, other] = [requests[at], requests[beside]];
  const text = query.get('said') ?? '';
  return (
    <>
      <div class="bar">
        {request && !text && <Way requests={requests} at={at} beside={beside} show={show} compare={compare} />}
        <form role="search" class={text ? '' : 'end'} onSubmit={(e) => (e.preventDefault(), set({ said: field.current?.value.trim() ?? '' }), field.current?.blur())}>
          <input ref={field} type="search" placeholder="Text in what was said" aria-label="Search what was said" defaultValue={text} key={text} maxLength={200} onInput={(e) => !e.currentTarget.value && text && set({ said: '' })} />
        </form>
        {text && <button type="button" onClick={() => set({ said: '' })}>Back to the requests</button>}
      </div>
      <div ref={box} class="transcript" key={`${name}/${request?.seq}/${other?.seq}/${text}`}>
        <h2 class="unseen">{text ? 'What was found' : other ? 'What differs' : 'What the model was asked'}</h2>
        {text ? <RunSearch name={name} text={text} />
          : !request ? <Empty>No request to a model is recorded of this run.</Empty>
          : other ? <Two name={name} a={other} b={request} numbers={[beside + 1, at + 1]} />
          : <One name={name} request={request} answer={answerOf(rows, request)} />}
      </div>
    </>
  );
}

// answerOf returns the event at which a request was answered; 0 if it was not.
function answerOf(rows: Row[], request: Row): number {
  const next = rows.find((r) => r.seq > request.seq && (r.type === 'ModelRequestCompleted' || r.type === 'ModelRequestStarted'));
  return next?.type === 'ModelRequestCompleted' ? next.seq : 0;
}

interface WayProps {
  requests: Row[];
  at: number;
  beside: number; // -1 for none
  show: (i: number) => unknown;
  compare: (i: number) => unknown;
}

// Way leads to the other requests.
function Way({ requests, at, beside, show, compare }: WayProps) {
  const request = requests[at];
  return (
    <>
      <button type="button" disabled={at === 0} onClick={() => show(at - 1)} title="Request before: h">‹ Request</button>
      <button type="button" disabled={at === requests.length - 1} onClick={() => show(at + 1)} title="Next request: l">Request ›</button>
      <Choice label="Request" at={at} most={requests.length} choose={show} />
      <span class="muted">of {count(requests.length)}, at <a href={href(location.value.path, {}, `seq=${request?.seq}`)}>event #{request?.seq}</a>{(request?.attempt ?? 0) > 1 && `, attempt ${request?.attempt}`}</span>
      <Choice label="Beside request" at={beside} most={requests.length} choose={compare} />
      {beside < 0
        ? at > 0 && <button type="button" onClick={() => compare(at - 1)} title="d">What is new in it</button>
        : <button type="button" onClick={() => compare(-1)} title="d">All of it</button>}
    </>
  );
}

// Choice is a field for the number of a request; empty for none.
function Choice({ label, at, most, choose }: { label: string; at: number; most: number; choose: (i: number) => unknown }) {
  return (
    <label class="field">{label} <input type="number" min={1} max={most} size={5} value={at < 0 ? '' : at + 1} key={at} onChange={(e) => {
      const n = Number(e.currentTarget.value);
      if (n >= 1 && n <= most) choose(n - 1);
      else if (label !== 'Request') choose(-1);
    }} /></label>
  );
}

function One({ name, request, answer }: { name: string; request: Row; answer: number }) {
  const { data, error, reload } = useLoad(`${name}/${request.seq}`, async (signal) => ({ entry: await recorded(name, request.seq, signal) }));
  if (error.value) return <Failure error={error.value} retry={reload} />;
  if (!data.value) return <Loading what="the conversation" />;
  const entry = data.value.entry;
  if (!entry) return <Empty>Of this request nothing is kept any more.</Empty>;
  const tools = entry.tools?.tools;
  return (
    <>
      <p class="muted">{count(entry.conversation?.length)} messages{tools && `, ${count(tools.length)} tools`}{entry.parameters && Object.entries(entry.parameters).map(([k, v]) => <>, <Text>{`${words(k)} ${String(v)}`}</Text></>)}.</p>
      <Conversation parts={entry.conversation ?? []} />
      {tools && <details class="turn"><summary>Tools it was offered</summary>{tools.map((t) => <p key={t.name}><b><Text>{t.name}</Text></b> <Text>{t.description}</Text></p>)}</details>}
      {answer > 0 && <><h2>What it answered</h2><section class="turn" data-step tabIndex={-1}><Recorded task={name} seq={answer} /></section></>}
    </>
  );
}

const batch = 30; // changes that are shown at a time

function Two({ name, a, b, numbers }: { name: string; a: Row; b: Row; numbers: [number, number] }) {
  const shown = useSignal(batch);
  const { data, error, reload } = useLoad(`${name}/${a.seq}/${b.seq}`, (signal) => Promise.all([recorded(name, a.seq, signal), recorded(name, b.seq, signal)]));
  if (error.value) return <Failure error={error.value} retry={reload} />;
  if (!data.value) return <Loading what="both requests" />;
  const [ea, eb] = data.value;
  if (!ea || !eb) return <Empty>Of one of these requests nothing is kept any more.</Empty>;
  const parts = changes(ea, eb, numbers);
  return (
    <>
      <p role="status">{said(ea, eb, numbers)}</p>
      {parts.slice(0, shown.value)}
      {parts.length > shown.value && <p class="more"><button type="button" onClick={() => (shown.value += batch)}>Show more</button></p>}
    </>
  );
}

const toolsOf = (e: Entry) => readable(JSON.stringify(e.tools?.tools ?? []));
const parametersOf = (e: Entry) => readable(JSON.stringify(e.parameters ?? {}));

const keyOf = (p: Part) => (p.omitted ? `${p.omitted} ${p.digest ?? Math.random()}` : JSON.stringify(p.message));

function said(a: Entry, b: Entry, [na, nb]: [number, number]): string {
  const runs = diff((a.conversation ?? []).map(keyOf), (b.conversation ?? []).map(keyOf));
  const sum = (kind: string) => runs.filter((r) => r.kind === kind).reduce((n, r) => n + r.n, 0);
  const messages = `${count(sum('same'))} messages are in both, ${count(sum('del'))} only in request ${na}, ${count(sum('ins'))} only in request ${nb}.`;
  return `${messages} The tools ${toolsOf(a) === toolsOf(b) ? 'are the same' : 'differ'}${parametersOf(a) === parametersOf(b) ? '' : ', and so do the parameters'}.`;
}

// changes are what differs between two requests, in the order of the messages.
function changes(a: Entry, b: Entry, [na, nb]: [number, number]): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  const [as, bs] = [a.conversation ?? [], b.conversation ?? []];
  const runs = diff(as.map(keyOf), bs.map(keyOf));
  const alone = (p: Part, n: number, sign: string, key: string) => out.push(<div class={`only ${sign === '+' ? 'ins' : 'del'}`} key={key}><p class="small"><b>{sign} Only in request {n}</b></p><Turn part={p} /></div>);
  for (let i = 0; i < runs.length; i++) {
    const [r, next] = [runs[i], runs[i + 1]];
    if (!r) break;
    if (r.kind === 'same') {
      out.push(<Same parts={bs.slice(r.b, r.b + r.n)} key={`same${r.a}`} />);
      continue;
    }
    const [gone, come] = r.kind === 'del' ? [as.slice(r.a, r.a + r.n), next?.kind === 'ins' ? bs.slice(next.b, next.b + next.n) : []] : [[], bs.slice(r.b, r.b + r.n)];
    if (gone.length > 0 && come.length > 0) i++;
    for (let k = 0; k < Math.max(gone.length, come.length); k++) {
      const [x, y] = [gone[k], come[k]];
      if (x?.message && y?.message && !x.omitted && !y.omitted && x.message.role === y.message.role) {
        out.push(<section class="turn" data-step tabIndex={-1} key={`both${r.a + k}`}><h3><Text>{titleOf(y)}</Text>, changed</h3><Difference a={textOf(x)} b={textOf(y)} label={`What changed in the message, ${titleOf(y)}`} /></section>);
        continue;
      }
      if (x) alone(x, na, '-', `a${r.a + k}`);
      if (y) alone(y, nb, '+', `b${(next && gone.length > 0 ? next.b : r.b) + k}`);
    }
  }
  for (const [title, x, y] of [['Tools', toolsOf(a), toolsOf(b)], ['Parameters', parametersOf(a), parametersOf(b)]] as const) {
    if (x !== y) out.push(<section class="turn" data-step tabIndex={-1} key={title}><h3>{title}</h3><Difference a={x} b={y} label={`What changed in the ${title.toLowerCase()}`} /></section>);
  }
  return out;
}

// textOf is what a message says, and what it calls.
function textOf({ message: m }: Part): string {
  return [readable(m?.text ?? ''), ...(m?.toolCalls ?? []).map((c) => `calls ${c.name}\n${readable(c.arguments ?? '')}`)].filter(Boolean).join('\n');
}

function Same({ parts }: { parts: Part[] }) {
  const open = useSignal(false);
  return (
    <details class="turn none" onToggle={(e) => (open.value = e.currentTarget.open)}>
      <summary class="muted">{parts.length === 1 ? 'A message that is in both' : `${count(parts.length)} messages that are in both`}</summary>
      {open.value && <Conversation parts={parts} />}
    </details>
  );
}
