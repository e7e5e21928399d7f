// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Numbers and times as people read them.
import { signal } from '@preact/signals';

// now ticks once a second, for ages.
export const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState !== 'hidden') now.value = Date.now();
}, 1000);

// The formats of Intl are not used here: the first one costs a page longer than everything else that it shows.

// count returns a whole number with its thousands apart.
export function count(n: number | undefined): string {
  return n === undefined ? '–' : String(n).replace(/\B(?=(\d{3})+$)/g, ',');
}

// short returns a number with at most three digits and a unit.
export function short(n: number | undefined): string {
  if (n === undefined) return '–';
  if (n < 10_000) return count(n);
  const [value, unit] = n < 1e6 ? [n / 1e3, 'k'] : n < 1e9 ? [n / 1e6, 'M'] : [n / 1e9, 'G'];
  return `${value < 100 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ['KiB', 'MiB', 'GiB'];
  let value = n / 1024;
  let i = 0;
  while (value >= 1024 && i < units.length - 1) {
    value /= 1024;
    i++;
  }
  return `${value.toFixed(1)} ${units[i]}`;
}

// duration returns milliseconds in at most two units.
export function duration(ms: number): string {
  if (!(ms >= 0)) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${pad(Math.floor(s % 60))} s`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h} h ${pad(m % 60)} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

// offset returns the time since a start as a clock, such as +01:02.345.
export function offset(ms: number): string {
  const sign = ms < 0 ? '−' : '+';
  const t = Math.abs(ms);
  const h = Math.floor(t / 3_600_000);
  const rest = `${pad(Math.floor(t / 60_000) % 60)}:${pad(Math.floor(t / 1000) % 60)}.${String(Math.floor(t) % 1000).padStart(3, '0')}`;
  return `${sign}${h ? `${h}:` : ''}${rest}`;
}

// ago returns how long ago a time was, in one unit.
export function ago(time: string | undefined): string {
  if (!time) return '–';
  const s = Math.max(0, (now.value - Date.parse(time)) / 1000);
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} d ago`;
}

// clock returns a time in the viewer's zone, such as 2026-11-23 08:05:00.
export function clock(time: string | undefined): string {
  const d = new Date(time ?? NaN);
  if (Number.isNaN(d.getTime())) return '–';
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

// words splits a name such as WaitingForApproval or needs_changes.
export function words(name: string): string {
  return name.replaceAll('_', ' ').replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
}

function pad(n: number): string {
  return String(n).padStart(2, '0');
}
