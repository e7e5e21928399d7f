// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One event as a row.
import type { Event } from '../api/types';
import { duration, offset, short, words } from './format';
import { failed, kindOf } from './kinds';
import { oneLine } from './text';

export function EventLine({ event, index, start }: { event: Event | undefined; index: number; start: number }) {
  if (!event) return <span class="seq muted">{index}</span>;
  return (
    <>
      <span class="seq">{event.seq}</span>
      <span class="at">{offset(Date.parse(event.createdAt) - start)}</span>
      <span class={`kind ${failed(event) ? 'failure' : kindOf(event.type)}`}>{words(event.type)}</span>
      <span class="what"><bdi>{oneLine(event.summary ?? event.contentText ?? '')}</bdi></span>
      <span class="figure">{figure(event)}</span>
    </>
  );
}

// figure is the number that matters most about an event.
function figure(e: Event): string {
  if (e.inputTokens !== undefined || e.outputTokens !== undefined) return `${short(e.inputTokens)} → ${short(e.outputTokens)}`;
  const ms = e.content?.durationMs;
  if (typeof ms === 'number' && ms > 0) return duration(ms);
  const chars = e.content?.contentChars ?? e.content?.resultLength;
  return typeof chars === 'number' ? `${short(chars)} chars` : '';
}
