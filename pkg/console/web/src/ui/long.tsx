// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Long texts are shown in parts, so that megabytes do not stop the page.
import { useSignal } from '@preact/signals';
import { bytes } from './format';
import { visible } from './text';

const part = 64 * 1024;

// Long is a text of which at first so many characters are shown.
export function Long({ text, label, first = part }: { text: string; label: string; first?: number }) {
  const shown = useSignal(first);
  const rest = text.length - shown.value;
  return (
    <>
      <pre class="long" dir="auto" tabIndex={0} aria-label={label}>{visible(text.slice(0, shown.value))}</pre>
      {rest > 0 && (
        <p class="more">
          <button type="button" onClick={() => (shown.value += 4 * part)}>Show more</button> <span class="muted">{bytes(rest)} are not shown.</span>
        </p>
      )}
    </>
  );
}
