// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What is special about a call of a tool that a coding agent has of its own.
import { editsOf, ownKind } from '../../api/approval';
import { useLoad } from '../../api/load';
import type { Approval } from '../../api/types';
import { Difference, Patch } from '../../ui/patch';
import { Exactly, exactly } from '../../ui/text';

// OwnTool names the tool and its kind.
export function OwnTool({ approval }: { approval: Approval }) {
  const { data } = useLoad(approval.metadata.name, (signal) => ownKind(approval, signal));
  if (!data.value) return null;
  return (
    <p class="muted">
      Tool <strong><Exactly>{approval.spec.targetTool}</Exactly></strong> of the coding agent itself, of kind <strong><Exactly>{data.value}</Exactly></strong>. A decision is about this one call.
    </p>
  );
}

// Edits show what a call would change in files, beside its arguments, which say the same.
export function Edits({ args }: { args: string }) {
  const edits = editsOf(args);
  if (edits.length === 0) return null;
  return (
    <section aria-label="What it would change">
      <h3>What it would change, as its arguments say</h3>
      {edits.map((e, i) => ('patch' in e ? <Patch key={i} text={exactly(e.patch)} label="Changes" /> : <Difference key={i} a={exactly(e.was)} b={exactly(e.is)} label="Changes" />))}
    </section>
  );
}
