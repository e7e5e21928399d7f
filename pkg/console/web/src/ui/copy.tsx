// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A button that copies a text as the page shows it: characters that are not seen are copied as their codes, because a text with them
// would do something else where it is pasted than it seems to.
import { useSignal } from '@preact/signals';
import { visible } from './text';

export function Copy({ text, label }: { text: string; label: string }) {
  const said = useSignal('');
  const copy = async () => {
    said.value = (await put(visible(text))) ? 'Copied' : 'Not copied';
    setTimeout(() => (said.value = ''), 2000);
  };
  return <button type="button" class="quiet small" aria-label={said.value ? undefined : `Copy ${label}`} onClick={() => void copy()}><span role="status">{said.value || 'Copy'}</span></button>;
}

async function put(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page without TLS that is not of this machine has no clipboard but this one.
    const area = document.createElement('textarea');
    area.value = text;
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}
