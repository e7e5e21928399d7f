// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The approvals that wait for a decision, which the navigation counts. Views that show what waits take them from here, so that
// there is one watch of them.
import { signal } from '@preact/signals';
import type { Approval } from './types';

export const pending = signal<Approval[]>([]);
