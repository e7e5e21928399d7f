// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The theme follows the system until somebody chooses one, which this browser keeps.
import { signal } from '@preact/signals';
import { kept } from './api/paths';

export type Theme = 'system' | 'light' | 'dark';

const key = kept.theme;
export const theme = signal<Theme>('system');
// dark is what is shown. Canvases draw anew when it changes.
export const dark = signal(false);

const system = window.matchMedia('(prefers-color-scheme: dark)');

function apply(): void {
  dark.value = theme.value === 'dark' || (theme.value === 'system' && system.matches);
  document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
}

export function startTheme(): void {
  try {
    const kept = localStorage.getItem(key);
    if (kept === 'light' || kept === 'dark') theme.value = kept;
  } catch {
    // A browser that keeps nothing shows the system's theme.
  }
  system.addEventListener('change', apply);
  apply();
}

export function nextTheme(): void {
  theme.value = theme.value === 'system' ? 'light' : theme.value === 'light' ? 'dark' : 'system';
  try {
    if (theme.value === 'system') localStorage.removeItem(key);
    else localStorage.setItem(key, theme.value);
  } catch {
    // The choice holds until the page is loaded again.
  }
  apply();
}
