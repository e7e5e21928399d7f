// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The frame of a list: what is shown in place of its rows, and the rest of it.
import type { ComponentChildren } from 'preact';
import type { ListState } from '../api/list';
import { count } from './format';
import { Empty, Failure, Loading, Notice } from './states';

interface Props<T> {
  list: ListState<T>;
  what: string; // the objects, in the plural
  shown: number; // how many of them are shown
  none: ComponentChildren; // what to say if there are none
  unmatched: ComponentChildren; // what to say if none is shown of those that there are
  children: ComponentChildren; // the rows
}

export function Listed<T>({ list, what, shown, none, unmatched, children }: Props<T>) {
  const { items, loading, error, rest, more } = list;
  const known = items.value.length > 0;
  return (
    <>
      {known && <Notice error={error.value} />}
      {!known && (error.value ? <Failure error={error.value} /> : loading.value ? <Loading what={what} /> : <Empty>{none}</Empty>)}
      {known && shown === 0 && <Empty>{unmatched}</Empty>}
      {shown > 0 && children}
      {rest.value !== 0 && (
        <p class="more">
          <button type="button" onClick={more}>Load more</button> <span class="muted">{rest.value > 0 ? `${count(rest.value)} ${what} are not shown.` : `Not all ${what} are shown.`}</span>
        </p>
      )}
    </>
  );
}
