// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Texts that agents, tools and people wrote. They are always text: nothing in them becomes an element by itself.
import { exactly, visible } from './visible';

export { exactly, oneLine, visible } from './visible';

export function Text({ children }: { children: string | undefined }) {
  return <bdi dir="auto">{visible(children ?? '')}</bdi>;
}

// Exactly is a text that somebody decides about.
export function Exactly({ children }: { children: string | undefined }) {
  return <bdi dir="auto">{exactly(children ?? '')}</bdi>;
}
