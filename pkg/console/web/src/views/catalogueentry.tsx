// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One object of the catalogue.
import { get, inNamespace } from '../api/client';
import type { Entry } from '../api/kinds';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import { href } from '../router';
import { Fact } from '../ui/eventdetails';
import { clock } from '../ui/format';
import { Long } from '../ui/long';
import { Markdown } from '../ui/markdown';
import { Empty, Failure, Loading } from '../ui/states';
import { Text } from '../ui/text';
import { yaml } from '../ui/yaml';
import { kinds, state } from './catalogue/kinds';

export function CatalogueEntry({ params }: { params: Record<string, string> }) {
  const { kind: resource = '', name = '' } = params;
  const builtin = kinds.some((k) => k.builtin === resource);
  const kind = kinds.find((k) => k.resource === resource || k.builtin === resource);
  const listed = useList<Entry>(builtin ? '' : inNamespace(kind?.resource ?? 'agents'), { fieldSelector: `metadata.name=${name}` });
  const loaded = useLoad(builtin ? inNamespace(resource, name) : '', (signal) => get<Entry>(inNamespace(resource, name), signal));
  const { loading, error } = builtin ? loaded : listed;
  const entry = builtin ? loaded.data.value : listed.items.value.find((e) => e.metadata.name === name);
  const heading = <h1><Text>{name}</Text></h1>;
  if (!kind) return <>{heading}<Empty>The catalogue has no <Text>{resource}</Text>. <a href={href('/catalogue')}>Show the catalogue.</a></Empty></>;
  if (!entry && error.value) return <>{heading}<Failure error={error.value} /></>;
  if (!entry) return <>{heading}{loading.value ? <Loading what={name} /> : <Empty>There is none of this name among the {kind.title.toLowerCase()} of this namespace.</Empty>}</>;
  const s = state(entry);
  const about = kind.about(entry);
  const inline = (entry.spec.content as { inline?: string } | undefined)?.inline;
  const { managedFields: _, ...metadata } = entry.metadata as Entry['metadata'] & { managedFields?: unknown };
  return (
    <>
      <p class="small"><a href={href('/catalogue', { kind: kind.id })}>{kind.title}</a></p>
      <div class="title">{heading}<span class={`phase ${s.tone}`}>{s.text}</span>{resource === 'agents' && may('create', 'tasks') && <a class="button" href={href('/new', { agent: name })}>New task …</a>}</div>
      {entry.status?.message && <p class={s.tone === 'bad' ? 'notice bad' : 'muted'}><Text>{entry.status.message}</Text></p>}
      {(entry.status?.conditions ?? []).filter((c) => c.message && c.status !== 'True' && c.message !== entry.status?.message).map((c) => <p key={c.type} class="notice"><Text>{`${c.type}: ${c.message}`}</Text></p>)}
      <dl class="facts">
        {!builtin && <Fact name="Created" value={clock(entry.metadata.creationTimestamp)} />}
        {kind.columns.map((c) => <div key={c.title}><dt>{c.title}</dt><dd>{c.cell(entry) || '–'}</dd></div>)}
      </dl>
      {about && kind.resource !== 'providers' && <section><h2>{kind.resource === 'agents' ? 'Instructions' : 'Description'}</h2><Markdown text={about} /></section>}
      {inline && <section><h2>Content</h2><Markdown text={inline} /></section>}
      <section><h2>YAML</h2><Long text={yaml({ ...entry, metadata })} label="YAML" /></section>
    </>
  );
}
