// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Views whose script is read when one of them is first shown, so that whoever never looks at them does not load it.
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Loading } from './states';

type Shown = ComponentType<{ params: Record<string, string> }>;

// later returns a component for each name, which shows the one of that name as soon as its script was read.
export function later<N extends string>(what: string, names: readonly N[], read: () => Promise<Record<N, Shown>>): Record<N, Shown> {
  const known = signal<Record<N, Shown> | null>(null);
  const failed = signal(false);
  const ask = () => {
    failed.value = false;
    read().then((views) => (known.value = views), () => (failed.value = true));
  };
  const shown = (name: N): Shown => function Later({ params }) {
    useEffect(() => {
      if (!known.peek()) ask();
    }, []);
    const View: Shown | undefined = known.value?.[name];
    if (View) return <View params={params} />;
    if (!failed.value) return <Loading what={what} />;
    return (
      <div class="state problem" role="alert">
        <p>This part of the console could not be loaded. If the server was updated, load the page again.</p>
        <p><button type="button" onClick={ask}>Try again</button></p>
      </div>
    );
  };
  return Object.fromEntries(names.map((name) => [name, shown(name)])) as Record<N, Shown>;
}
