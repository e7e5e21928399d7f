// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The list of keys.
import { useEffect, useRef } from 'preact/hooks';
import { helpOpen, known } from '../keys';

export function Help() {
  const ref = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    const d = ref.current;
    if (!d) return;
    if (open && !d.open) d.showModal();
    if (!open && d.open) d.close();
  }, [open]);
  return (
    <dialog ref={ref} class="help" aria-label="Keys" onClose={() => (helpOpen.value = false)}>
      {open && (
        <>
          <h2>Keys</h2>
          <dl class="keys">
            {known().map((k) => (
              <div key={k.keys.join()}>
                <dt>{k.keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
                <dd>{k.label}</dd>
              </div>
            ))}
          </dl>
          <button type="button" onClick={() => (helpOpen.value = false)}>Close</button>
        </>
      )}
    </dialog>
  );
}
