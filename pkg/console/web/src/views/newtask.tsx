// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A form for a new task: an agent, and what it is to do. ?from is a task whose spec the new one takes over, with what is changed here.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { ApiError, explain, get, inNamespace, query, send } from '../api/client';
import { promptOf } from '../api/compare';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import { again, create, named } from '../api/taskactions';
import type { Item, List, Task } from '../api/types';
import { go, href, location, namespace, taskHref } from '../router';
import { Empty, Failure, Loading } from '../ui/states';
import { Text } from '../ui/text';

const most = 500; // agents that are suggested

export function NewTask() {
  const from = location.value.query.get('from') ?? '';
  const source = useLoad(from && `${namespace()}/${from}`, (signal) => get<Task>(inNamespace('tasks', from), signal));
  const allowed = may('create', 'tasks');
  const title = <div class="title"><h1>{from ? <>Run <Text>{from}</Text> with changes</> : 'New task'}</h1></div>;
  if (from && source.error.value) return <>{title}<Failure error={source.error.value} retry={source.reload} /></>;
  if (allowed === undefined || (from && !source.data.value)) return <>{title}<Loading what={from ? 'the task' : 'what you may do'} /></>;
  if (!allowed) return <>{title}<Empty>Your role does not permit you to create tasks in this namespace.</Empty></>;
  return <>{title}<Form key={from} source={source.data.value ?? undefined} /></>;
}

// labelsOf reads labels such as team=web, tier=test. One without a value is empty.
function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const part of text.split(',').map((p) => p.trim()).filter(Boolean)) {
    const [key = '', ...value] = part.split('=');
    if (!key.trim()) throw new Error(`Labels: ${part} must be KEY=VALUE.`);
    labels[key.trim()] = value.join('=').trim();
  }
  return labels;
}

function Form({ source }: { source: Task | undefined }) {
  const busy = useSignal(false);
  const problem = useSignal('');
  const agents = useLoad(may('list', 'agents') ? namespace() : '', agentsOf);
  const base = source && again(source);
  const agent = useSignal(base?.spec.agentRef?.name ?? location.value.query.get('agent') ?? '');
  const prompt = useRef<HTMLTextAreaElement>(null);
  const name = useSignal(named(source ? `${source.metadata.name}-rerun` : 'task')); // a request that is sent again makes no second task
  useLayoutEffect(() => prompt.current?.focus(), []);
  const prompted = !base || base.spec.type !== 'container';
  const missing = agent.value && agents.data.value?.complete && !agents.data.value.names.includes(agent.value);

  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy.value) return;
    const f = new FormData(e.currentTarget as HTMLFormElement);
    const text = (field: string) => String(f.get(field) ?? '').trim();
    busy.value = true;
    problem.value = '';
    const own = text('name');
    try {
      const priority = text('priority');
      const labels = labelsOf(text('labels'));
      const spec: Task['spec'] = { ...(base?.spec ?? { type: 'ai' }), ...(prompted ? { prompt: text('prompt') } : {}), ...(priority ? { priority: Number(priority) } : {}) };
      if (prompted && agent.value !== (base?.spec.agentRef?.name ?? '')) {
        if (agent.value) spec.agentRef = { name: agent.value };
        else delete spec.agentRef;
      }
      go(taskHref(await create({ metadata: { name: own || name.value, labels }, spec })));
    } catch (err) {
      if (!own && err instanceof ApiError && err.code === 409) go(taskHref(name.value)); // the answer to the request before was lost
      else problem.value = explain(err);
      busy.value = false;
    }
  };
  return (
    <form class="form" onSubmit={(e) => void submit(e)}>
      {prompted && (
        <>
          <label>Agent
            <input name="agent" value={agent.value} onInput={(e) => (agent.value = e.currentTarget.value.trim())} list="agents" placeholder="None: the Provider's default model, without tools" maxLength={253} spellcheck={false} autocomplete="off" />
          </label>
          <datalist id="agents">{agents.data.value?.names.map((n) => <option key={n} value={n} />)}</datalist>
          {missing && <p class="notice">There is no agent <Text>{agent.value}</Text> in this namespace. The task fails unless it is created within seconds.</p>}
          <label>Prompt
            <textarea ref={prompt} name="prompt" rows={6} required defaultValue={source ? promptOf(source) : ''} placeholder="What is to be done" onKeyDown={enter} />
          </label>
        </>
      )}
      {!prompted && <p>It runs the same command as <Text>{source?.metadata.name}</Text>.</p>}
      <div class="pair-of">
        <label>Name <input name="name" placeholder={name.value} maxLength={253} spellcheck={false} autocomplete="off" /></label>
        <label>Priority <input name="priority" type="number" min={0} max={1000} placeholder="500" defaultValue={base?.spec.priority === undefined ? '' : String(base.spec.priority)} /></label>
      </div>
      <label>Labels <input name="labels" placeholder="team=web, tier=test" defaultValue={Object.entries(base?.metadata.labels ?? {}).map(([k, v]) => `${k}=${v}`).join(', ')} maxLength={4096} spellcheck={false} autocomplete="off" /></label>
      <p class="muted small">In the namespace <Text>{namespace()}</Text>.{source && ' Everything else is as in the task that it is made from.'}</p>
      {problem.value && <p class="notice bad" role="alert">{problem.value}</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={busy.value}>{busy.value ? 'Creating …' : 'Create the task'} <kbd>Enter</kbd></button>
        <a class="button" href={source ? taskHref(source.metadata.name) : href('/tasks')}>Back</a>
      </div>
    </form>
  );
}

// agentsOf returns the names of agents, and whether they are all.
async function agentsOf(signal: AbortSignal): Promise<{ names: string[]; complete: boolean }> {
  const r = await send(query(inNamespace('agents'), { limit: most }), { signal, accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' });
  const list = (await r.json()) as List<Item>;
  return { names: list.items.map((i) => i.metadata.name), complete: !list.metadata.continue };
}

// enter sends the form, as in the other fields for a text; with Shift it begins a line.
function enter(e: KeyboardEvent & { currentTarget: HTMLTextAreaElement }): void {
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  e.currentTarget.form?.requestSubmit();
}
