// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Objects as YAML, the way kubectl prints them. Members are in the order of their names.

const plain = /^[A-Za-z0-9_./][A-Za-z0-9_./ -]*$/;
const other = /^(true|false|null|yes|no|on|off|~|[-+.\d].*)$/i; // would be read as something else than a string

function scalar(v: unknown, indent: string): string {
  if (typeof v !== 'string') return JSON.stringify(v) ?? 'null';
  if (v.includes('\n') && !/[\t\r]|^\s|\s$/.test(v.replace(/\n$/, ''))) {
    return `|${v.endsWith('\n') ? '' : '-'}\n${v.replace(/\n$/, '').split('\n').map((l) => (l ? indent + l : '')).join('\n')}`;
  }
  return plain.test(v) && !other.test(v) && !v.endsWith(' ') ? v : JSON.stringify(v);
}

export function yaml(v: unknown, indent = ''): string {
  if (Array.isArray(v)) {
    if (v.length === 0) return '[]';
    return v.map((i) => `${indent}- ${block(i, `${indent}  `).trimStart()}`).join('\n');
  }
  if (v !== null && typeof v === 'object') {
    const keys = Object.keys(v).sort();
    if (keys.length === 0) return '{}';
    return keys.map((k) => {
      const value = (v as Record<string, unknown>)[k];
      const name = `${indent}${scalar(k, '')}:`;
      if (value !== null && typeof value === 'object' && Object.keys(value).length > 0) return `${name}\n${yaml(value, Array.isArray(value) ? indent : `${indent}  `)}`;
      return `${name} ${block(value, `${indent}  `)}`;
    }).join('\n');
  }
  return scalar(v, indent);
}

function block(v: unknown, indent: string): string {
  return v !== null && typeof v === 'object' ? yaml(v, indent) : scalar(v, indent);
}
