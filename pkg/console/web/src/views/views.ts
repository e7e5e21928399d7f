// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All views. The first whose path matches is shown.
import type { ComponentType } from 'preact';
import { Tasks } from './tasks';

export interface View {
  path: string; // :name is a parameter
  title: string;
  key?: string; // the letter after g
  nav?: boolean; // whether the navigation shows it
  component: ComponentType<{ params: Record<string, string> }>;
}

export const views: View[] = [
  { path: '/', title: 'Tasks', component: Tasks },
  { path: '/tasks', title: 'Tasks', key: 't', nav: true, component: Tasks },
];
