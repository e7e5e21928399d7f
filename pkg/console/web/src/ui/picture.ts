// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Images that are part of a text. They are shown if their first bytes say what their type says, and if they cost little: an image of
// few bytes may take gigabytes when it is drawn. SVG is a document and never shown, and nothing is fetched.

export interface Picture {
  src: string;
  type: string;
  bytes: number;
  width: number;
  height: number;
}

const mostBytes = 1 << 20;
const mostPixels = 16 << 20;

// picture returns the image that a text is, as a data: URL; null if it is none that is shown.
export function picture(text: string): Picture | null {
  const m = /^data:(image\/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/]+={0,2})\s*$/.exec(text);
  return m ? checked(m[1] ?? '', m[2] ?? '') : null;
}

// checked returns an image of a type, in Base64.
export function checked(type: string, data: string): Picture | null {
  if (data.length > (mostBytes / 3) * 4 + 4) return null;
  let raw: string;
  try {
    raw = atob(data);
  } catch {
    return null;
  }
  const [width, height] = size(type, raw);
  if (!(width > 0 && height > 0 && width * height <= mostPixels)) return null;
  return { src: `data:${type};base64,${data}`, type, bytes: raw.length, width, height };
}

const none: [number, number] = [0, 0];

// size returns the width and the height that an image declares; nothing for one that is not of its type.
function size(type: string, raw: string): [number, number] {
  const at = (i: number) => raw.charCodeAt(i);
  const big = (i: number, n: number) => Array.from({ length: n }, (_, k) => at(i + k)).reduce((sum, b) => sum * 256 + b, 0);
  const little = (i: number, n: number) => Array.from({ length: n }, (_, k) => at(i + n - 1 - k)).reduce((sum, b) => sum * 256 + b, 0);
  switch (type) {
    case 'image/png':
      return raw.startsWith('\x89PNG\r\n\x1a\n') && raw.slice(12, 16) === 'IHDR' ? [big(16, 4), big(20, 4)] : none;
    case 'image/gif':
      return /^GIF8[79]a/.test(raw) ? [little(6, 2), little(8, 2)] : none;
    case 'image/webp':
      if (!raw.startsWith('RIFF') || raw.slice(8, 12) !== 'WEBP') return none;
      switch (raw.slice(12, 16)) {
        case 'VP8X':
          return [1 + little(24, 3), 1 + little(27, 3)];
        case 'VP8L':
          return [1 + (little(21, 4) % 16384), 1 + (Math.floor(little(21, 4) / 16384) % 16384)];
        case 'VP8 ':
          return [little(26, 2) % 16384, little(28, 2) % 16384];
      }
      return none;
    case 'image/jpeg':
      if (!raw.startsWith('\xff\xd8')) return none;
      for (let i = 2; at(i) === 0xff; i += 2 + big(i + 2, 2)) {
        const marker = at(i + 1);
        if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) return [big(i + 7, 2), big(i + 5, 2)];
      }
  }
  return none;
}
