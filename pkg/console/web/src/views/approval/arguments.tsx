// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The arguments of a call that waits for a decision, and whether they are all of it.
import { indented, members } from '../../api/source';
import { Exactly, exactly } from '../../ui/text';
import { Whole } from '../../ui/whole';

// Arguments shows each argument as it is: a text with its line breaks, anything else as JSON, with a word that says which.
export function Arguments({ args, exact }: { args: string | undefined; exact: boolean }) {
  if (!args || args === 'null') return <p class="notice">Who asked does not show the arguments. Only their digest is known, and a decision is about whatever it stands for.</p>;
  return (
    <>
      {exact ? <p class="muted small">Exactly these.</p> : <p class="notice">Not all of the arguments are shown: secrets are replaced, long texts are cut. A decision covers them whole, by their digest.</p>}
      <Values args={args} />
    </>
  );
}

function Values({ args }: { args: string }) {
  const list = members(args);
  if (!list) return <Whole text={indented(args)} label="Arguments" />;
  if (list.length === 0) return <p class="muted">The call has no arguments.</p>;
  return (
    <dl class="arguments">
      {list.map(([name, value], i) => {
        const text = value.startsWith('"');
        return (
          <div key={i}>
            <dt><Exactly>{name}</Exactly> {!text && <span class="muted small">{kind(value)}</span>}</dt>
            <dd><Whole text={text ? (JSON.parse(value) as string) : indented(value)} label={exactly(name) || 'Argument'} /></dd>
          </div>
        );
      })}
    </dl>
  );
}

// kind names what is no text, so that the text "1" is not taken for the number.
function kind(value: string): string {
  return { '{': 'object', '[': 'list', t: 'yes or no', f: 'yes or no', n: 'nothing' }[value.charAt(0)] ?? 'number';
}
