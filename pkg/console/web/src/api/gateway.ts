// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Gateways to chat systems and their two ledgers, as far as views read them. Texts, names, places and messages were written by anybody.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { ApiError, aborted, apiVersion, get, inNamespace, post, query } from './client';
import { awake, watch, type ListState } from './list';
import { Backoff } from './stream';
import type { Condition, Item, List } from './types';

export interface Gateway extends Item {
  spec: { gatewayClassName: string; adapter: { endpoint?: string; serviceRef?: { name: string; port?: number } } };
  status?: {
    connected?: boolean;
    ready?: boolean;
    resolvedEndpoint?: string;
    observedCapabilities?: { contractVersion?: string; adapterName?: string; adapterVersion?: string; capabilities?: Record<string, boolean> };
    lastSuccessfulProbe?: string;
    message?: string;
    conditions?: Condition[];
  };
}

export interface Binding extends Item {
  spec: {
    gatewayRef: { name: string };
    agentRef: { name: string };
    match: Place & { senderId?: string };
    senderPolicy?: { mode?: string; allowedSenderIds?: string[] };
    session?: { mode?: string; name?: string };
  };
  status?: { ready?: boolean; message?: string; lastInboundActivity?: string };
}

// Place is where something was written.
export interface Place {
  accountId: string;
  contextId: string;
  threadId?: string;
}

// Recorded is what both ledgers have in common.
interface Recorded extends Item {
  spec: Place & { gatewayName: string; text: string; createdAt: string };
  status?: { state?: string; reason?: string; attemptCount?: number; nextAttemptAt?: string };
}

export interface GatewayEvent extends Recorded {
  spec: Recorded['spec'] & { externalEventId: string; senderId: string; senderDisplayName?: string };
  status?: Recorded['status'] & {
    stateMessage?: string;
    bindingName?: string;
    agentName?: string;
    sessionName?: string;
    taskName?: string;
    deliveryId?: string;
    duplicates?: number;
    mismatches?: number;
    replays?: number;
    replayedBy?: string;
    decision?: { decision: string; code: string; approval?: string; subject?: string };
  };
}

export interface Delivery extends Recorded {
  spec: Recorded['spec'] & { kind: string; eventId: string; sessionName: string; taskName?: string; maxAttempts?: number };
  status?: Recorded['status'] & {
    unreachedCount?: number;
    manualRetryCount?: number;
    retriedBy?: string;
    outcomeUnknown?: boolean;
    late?: boolean;
    expiresAt?: string;
    providerMessageId?: string;
    lastError?: string;
    deliveredAt?: string;
  };
}

// Asked selects records. What is empty selects all.
export interface Asked {
  gateway?: string | undefined;
  binding?: string | undefined;
  session?: string | undefined;
  states?: string[] | undefined;
}

interface Answer<T> {
  status: { events?: T[]; deliveries?: T[]; continue?: string };
}

const mostRequests = 10; // for a part. The server looks at a number of records at a time, of which none may be asked for.
const mostAdded = 500; // records that may arrive before the oldest ones are not kept any more

// newer orders records: the newest first.
const newer = (a: Recorded, b: Recorded) => b.spec.createdAt.localeCompare(a.spec.createdAt) || a.metadata.name.localeCompare(b.metadata.name);

// useRecords lists records, the newest first, in parts, and follows all that changes among them. The server finds the parts (a query), because
// a ledger may have a million records. What changes is watched from before the first part on, so nothing is missed between the two.
export function useRecords<T extends GatewayEvent | Delivery>(of: 'events' | 'deliveries', asked: Asked, part: number): ListState<T> {
  const items = useSignal<T[]>([]);
  const loading = useSignal(true);
  const error = useSignal<unknown>(null);
  const rest = useSignal(0);
  const want = useSignal(part);
  const again = useSignal(0);
  const further = useRef<() => void>(() => undefined);
  const path = inNamespace(`gateway${of}`);
  const at = of === 'events' ? 'status' : 'spec';
  const fields: Array<[string, string | undefined]> = [['spec.gatewayName', asked.gateway], [`${at}.bindingName`, asked.binding], [`${at}.sessionName`, asked.session]];
  const fieldSelector = fields.filter(([, v]) => v).map((f) => f.join('=')).join();
  const key = path + JSON.stringify(asked);
  const shown = awake.value;
  const round = again.value;

  useLayoutEffect(() => {
    loading.value = true;
    items.value = [];
    want.value = part;
  }, [key]);

  useLayoutEffect(() => {
    if (!shown) return;
    const end = new AbortController();
    const all = new Map<string, T>();
    const { states = [], ...narrow } = asked;
    let next: string | undefined; // where the records end that were read; empty at the end of all
    let cut = false; // whether records after that place are not kept any more
    let timer = 0;
    const publish = () => {
      timer = 0;
      if (end.signal.aborted) return;
      const rows = [...all.values()].sort(newer);
      cut ||= rows.length > want.value + mostAdded;
      for (const r of cut ? rows.splice(want.value) : []) all.delete(r.metadata.name);
      items.value = rows;
      rest.value = next || cut ? -1 : 0;
    };
    const apply = (type: string, r: T) => {
      const { name } = r.metadata;
      const oldest = items.value.at(-1);
      if (type === 'DELETED' || (states.length > 0 && !states.includes(r.status?.state ?? ''))) all.delete(name);
      // A record that changed, and that is older than those that are shown, is shown in its turn; one in a state that is looked for, at once.
      else if (all.has(name) || states.length > 0 || !next || (oldest && newer(r, oldest) < 0)) all.set(name, r);
      else return;
      timer ||= window.setTimeout(publish, 100); // many changes are one repaint
    };
    const read = async () => {
      for (let left = mostRequests; left > 0 && all.size < want.value && (next || all.size === 0); left--) {
        const spec = { records: of, ...narrow, states, limit: Math.min(want.value - all.size, 500), cursor: next };
        const { status }: Answer<T> = await post<Answer<T>>(inNamespace('gatewayrecordqueries'), { apiVersion, kind: 'GatewayRecordQuery', spec }, end.signal);
        for (const r of status[of] ?? []) if (!all.has(r.metadata.name)) all.set(r.metadata.name, r); // what a watch said is newer
        next = status.continue;
        if (!next) break;
      }
      publish();
      loading.value = false;
      error.value = null;
    };
    const failed = (e: unknown) => {
      const over = e instanceof ApiError && e.code === 401; // which ends all reading, this one included
      if (aborted(e) || (end.signal.aborted && !over)) return true;
      error.value = e;
      loading.value = false;
      return over || (e instanceof ApiError && (e.code === 400 || e.code === 403 || e.code === 404));
    };
    further.current = () => (cut ? again.value++ : void read().catch(failed));
    const follow = async () => {
      const backoff = new Backoff();
      let version = '';
      while (!end.signal.aborted) {
        try {
          if (!version) {
            const now = await get<List<T>>(query(path, { limit: 1 }), end.signal);
            all.clear();
            next = undefined;
            cut = false;
            await read();
            version = now.metadata.resourceVersion ?? '';
          }
          await watch<T>(query(path, { fieldSelector, watch: true, allowWatchBookmarks: true, resourceVersion: version }), end.signal, (c) => {
            version = c.object.metadata.resourceVersion ?? version;
            if (c.type !== 'BOOKMARK') apply(c.type, c.object);
            error.value = null;
            backoff.reset();
          });
        } catch (e) {
          if (e instanceof ApiError && e.code === 410) version = '';
          if (failed(e)) return;
          await backoff.wait(end.signal);
        }
      }
    };
    void follow();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [key, shown, round]);

  return { items, loading, error, rest, more: () => { want.value += part; further.current(); } };
}
