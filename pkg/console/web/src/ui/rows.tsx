// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A list of any length with rows of one height.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Pool, type Source } from './pool';

export { rowHeight } from './pool';
export type RowsApi = Pick<Pool, 'show' | 'toEnd'>;

interface Props extends Source {
  label: string;
  api?: { current: RowsApi | null };
}

export function Rows({ label, api, ...source }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const pool = useRef<Pool | null>(null);
  const latest = useRef<Source>(source);
  latest.current = source;
  useLayoutEffect(() => {
    if (!box.current) return;
    const made = new Pool(box.current, () => latest.current);
    pool.current = made;
    if (api) api.current = made;
    return () => made.end();
  }, []);
  useLayoutEffect(() => pool.current?.changed());
  return (
    <div ref={box} class="rows" role="listbox" aria-label={label} tabIndex={0}>
      <div class="filler" role="presentation" />
      <div class="window" role="presentation"><div class="passed" aria-hidden="true" /><div class="lines" role="presentation" /></div>
    </div>
  );
}
