// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A question before something is done that cannot be taken back. Enter confirms, and Escape closes it.
import { useLayoutEffect, useRef } from 'preact/hooks';

interface Props {
  text: string;
  verb: string; // on the button that confirms
  reason?: boolean | undefined; // whether somebody may give a reason
  go: (reason: string) => void;
  close: () => void;
}

export function Question({ text, verb, reason, go, close }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const yes = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => (field.current ?? yes.current)?.focus(), []);
  return (
    <form class="decide" aria-label={text} onSubmit={(e) => (e.preventDefault(), go(field.current?.value.trim() ?? ''))} onKeyDown={(e) => e.key === 'Escape' && (e.stopPropagation(), close())}>
      <p><strong>{text}</strong></p>
      {reason && <label>A reason, if you want to give one <input ref={field} maxLength={1000} autocomplete="off" /></label>}
      <p class="actions">
        <button ref={yes} type="submit" class="danger">{verb} <kbd>Enter</kbd></button>
        <button type="button" onClick={close}>Close <kbd>Esc</kbd></button>
      </p>
    </form>
  );
}
