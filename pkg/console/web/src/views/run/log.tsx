// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The log of a run: its last lines, and while the run goes on, those that are added.
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { ApiError, aborted, inNamespace, query, send } from '../../api/client';
import { awake } from '../../api/list';
import { Backoff } from '../../api/stream';
import type { Task } from '../../api/types';
import { count } from '../../ui/format';
import { Long } from '../../ui/long';
import { ended } from '../../ui/phase';
import { Empty, Failure, Loading, Notice } from '../../ui/states';

const most = 1000; // lines
const longest = 64 * 1024; // characters that are kept while the log grows

// last returns the end of a text, from the beginning of a line.
function last(text: string): string {
  return text.length <= longest ? text : text.slice(text.indexOf('\n', text.length - longest) + 1);
}

export function RunLog({ name, task }: { name: string; task: Task | undefined }) {
  const text = useSignal<string | null>(null);
  const error = useSignal<unknown>(null);
  const end = useRef<HTMLDivElement>(null);
  const bottom = useRef(true);
  const over = ended(task?.status?.phase);
  const shown = awake.value;
  const known = task !== undefined;

  useEffect(() => {
    if (!shown || !known) return;
    const life = new AbortController();
    const path = inNamespace('tasks', name, 'log');
    const read = async () => {
      const r = await send(query(path, over ? { tailLines: most } : { follow: true }), { signal: life.signal, accept: '*/*' });
      error.value = null;
      if (over || !r.body) return void (text.value = await r.text());
      text.value ??= '';
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      let all = ''; // a log that is followed begins with its first line
      let frame = 0;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        all = last(all + value);
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          bottom.current = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 40;
          text.value = all;
        });
      }
      cancelAnimationFrame(frame);
      text.value = all;
    };
    void (async () => {
      for (const backoff = new Backoff(); !life.signal.aborted; await backoff.wait(life.signal)) {
        try {
          await read();
          if (over) return;
        } catch (e) {
          if (aborted(e) || life.signal.aborted) return;
          error.value = e;
          if (e instanceof ApiError && e.code >= 400 && e.code < 500 && e.code !== 429) return;
        }
      }
    })();
    return () => life.abort();
  }, [name, over, shown, known]);
  useLayoutEffect(() => {
    if (!over && bottom.current) end.current?.scrollIntoView({ block: 'end' });
  }, [text.value]);

  if (text.value === null) return error.value ? <Failure error={error.value} /> : <Loading what="the log" />;
  return (
    <>
      <Notice error={error.value} />
      {text.value ? <Long text={text.value} label="Log" /> : <Empty>The log is empty.</Empty>}
      <p class="muted small">{over ? `At most the last ${count(most)} lines.` : 'The end of the log, which goes on while the task runs.'}</p>
      <div ref={end} />
    </>
  );
}
