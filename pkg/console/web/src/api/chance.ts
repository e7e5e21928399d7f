// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// chance returns hexadecimal digits that nobody guesses, two for each byte. A page without TLS has no crypto.randomUUID.
export const chance = (n: number): string => Array.from(crypto.getRandomValues(new Uint8Array(n)), (b) => b.toString(16).padStart(2, '0')).join('');
