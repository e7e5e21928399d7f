// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Characters that are not seen, or that change the direction of what follows, could make a text look like another one. They are
// replaced by their codes.

const plain = /^[\t\n -~]*$/;

// What people read has tabs, line ends, and the two selectors of emoji as they are.
const hidden = /(?![\t\n\r\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{DI}\p{Zl}\p{Zp}\u2800]/gu;

// What people decide about is as strict as the commands are (Exact of pkg/visible), except for tabs and line ends.
const inexact = /(?![\t\n])[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|[\p{DI}\p{VS}\p{Bidi_C}\p{Join_C}\u2800]/gu;

const code = (c: string) => `⟨U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

export function visible(text: string): string {
  return plain.test(text) ? text : text.replace(hidden, code);
}

export function exactly(text: string): string {
  return plain.test(text) ? text : text.replace(inexact, code);
}

// oneLine returns the beginning of a text, for a row.
export function oneLine(text: string, most = 300, show = visible): string {
  return show(text.slice(0, most).replace(/\s+/g, ' ')) + (text.length > most ? '…' : '');
}
