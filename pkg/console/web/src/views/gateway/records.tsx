// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The ledgers of a gateway, or of all gateways of the namespace, in the states that somebody looks for. The newest records are first.
import type { ComponentChildren } from 'preact';
import { useRecords, type Delivery, type GatewayEvent } from '../../api/gateway';
import { location, set } from '../../router';
import { Listed } from '../../ui/listed';
import { useSteps } from '../../ui/steps';
import { Text } from '../../ui/text';
import { Sent, Written } from './record';

export const part = 50; // records

type States = Record<string, { title: string; states?: string[] }>;

const ofEvents: States = {
  '': { title: 'all' },
  open: { title: 'waiting and running', states: ['Queued', 'Dispatching', 'TaskCreated'] },
  rejected: { title: 'rejected', states: ['Rejected'] },
  dead: { title: 'dead letters', states: ['DeadLettered'] },
  expired: { title: 'expired', states: ['Expired'] },
  done: { title: 'completed', states: ['Completed'] },
};

const ofDeliveries: States = {
  '': { title: 'all' },
  open: { title: 'on their way', states: ['Pending', 'Sending', 'RetryScheduled'] },
  dead: { title: 'dead letters', states: ['DeadLettered', 'Failed'] },
  expired: { title: 'expired', states: ['Expired'] },
  done: { title: 'delivered', states: ['Delivered'] },
};

interface Props<T> {
  of: 'events' | 'deliveries';
  gateway: string | undefined;
  states: States;
  none: string;
  one: (record: T) => ComponentChildren;
}

function Records<T extends GatewayEvent | Delivery>({ of, gateway, states, none, one }: Props<T>) {
  const query = location.value.query;
  const show = query.get('show') ?? '';
  const binding = query.get('binding') ?? '';
  const list = useRecords<T>(of, { gateway, binding, states: states[show]?.states }, part);
  const box = useSteps<HTMLDivElement>('record', () => undefined);
  const rows = list.items.value;
  return (
    <>
      <div class="bar">
        <label class="field">Show
          <select value={show} onChange={(e) => set({ show: e.currentTarget.value })}>{Object.entries(states).map(([id, s]) => <option key={id} value={id}>{s.title}</option>)}</select>
        </label>
        {binding && <button type="button" onClick={() => set({ binding: '' })}>Only of the binding <Text>{binding}</Text> <span aria-hidden="true">×</span><span class="unseen">, show all</span></button>}
      </div>
      <Listed list={list} what={of} shown={rows.length} none={show || binding ? `None of the ${of} ${list.rest.value ? 'that were looked at is' : 'is'} what you look for.` : none} unmatched="">
        <div ref={box} class="transcript">{rows.map(one)}</div>
      </Listed>
    </>
  );
}

export function Events({ gateway }: { gateway?: string }) {
  return <Records<GatewayEvent> of="events" gateway={gateway} states={ofEvents} none="Nobody has written anything yet, or it is not kept any more." one={(e) => <Written key={e.metadata.name} event={e} alone />} />;
}

export function Deliveries({ gateway }: { gateway?: string }) {
  return <Records<Delivery> of="deliveries" gateway={gateway} states={ofDeliveries} none="Nothing was answered yet, or it is not kept any more." one={(d) => <Sent key={d.metadata.name} delivery={d} alone />} />;
}
