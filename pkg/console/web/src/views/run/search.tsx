// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The events of a run with which a text came: in what the model was asked or answered, in arguments and in results.
import { useSignal } from '@preact/signals';
import { useLoad } from '../../api/load';
import { found, type Recorded } from '../../api/recording';
import { href, location } from '../../router';
import { count, words } from '../../ui/format';
import { Empty, Failure, Loading } from '../../ui/states';
import { visible } from '../../ui/text';

export function RunSearch({ name, text }: { name: string; text: string }) {
  const pages = useSignal<Recorded[][]>([]);
  const after = useSignal(0);
  const of = `${name}/${text}`;
  const page = useLoad(`${of}/${after.value}`, async (signal) => {
    const r = await found(name, text, after.peek(), signal);
    if (!signal.aborted) pages.value = after.peek() === 0 ? [r.entries] : [...pages.peek(), r.entries];
    return r;
  }, 0, of);
  const r = page.data.value;
  if (page.error.value) return <Failure error={page.error.value} retry={page.reload} />;
  if (!r) return <Loading what="what was said" />;
  const all = pages.value.flat();
  return (
    <>
      <p role="status">{all.length === 0 ? '' : all.length === 1 ? 'It came with one event.' : `It came with ${count(all.length)} events${r.continue ? ' so far' : ''}.`}</p>
      {all.length === 0 && <Empty>{r.continue ? `Nothing up to event ${count(r.continue)}.` : 'Nothing that was said in this run has this text.'}</Empty>}
      {all.map((e) => (
        <div class="turn" key={e.seq} data-step tabIndex={-1}>
          <h3><a href={href(location.value.path, {}, `seq=${e.seq}`)}>{words(e.type)} #{e.seq}</a></h3>
          <p><bdi dir="auto">{marked(visible(e.match ?? ''), text)}</bdi></p>
        </div>
      ))}
      {r.continue && <p class="more"><button type="button" disabled={page.loading.value} onClick={() => (after.value = r.continue ?? 0)}>Search on</button></p>}
    </>
  );
}

// marked marks the first occurrence of a text in the words around it.
function marked(all: string, text: string) {
  const at = all.toLowerCase().indexOf(text.replace(/\s+/g, ' ').toLowerCase());
  return at < 0 ? all : <>{all.slice(0, at)}<mark>{all.slice(at, at + text.length)}</mark>{all.slice(at + text.length)}</>;
}
