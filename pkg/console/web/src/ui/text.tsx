// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Texts that agents, tools and people wrote. They are always text: nothing in them becomes an element by itself.

// Characters that are not seen, or that change the direction of what follows, could make a text look like another one.
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

// visible replaces such characters by their names.
export function visible(text: string): string {
  hidden.lastIndex = 0;
  if (!hidden.test(text)) return text;
  return text.replace(hidden, (c) => `⟨U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

// oneLine returns the beginning of a text, for a row.
export function oneLine(text: string, most = 300): string {
  return visible(text.slice(0, most).replace(/\s+/g, ' '));
}

export function Text({ children }: { children: string | undefined }) {
  return <bdi dir="auto">{visible(children ?? '')}</bdi>;
}
