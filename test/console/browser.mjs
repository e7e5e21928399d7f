// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// How the tests start Chromium: its shell without windows, which needs less of the processor.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// started returns a browser of playwright's chromium with more arguments. On a busy machine Chromium now and then dies while it
// starts (SIGSEGV), which says nothing about a page; it is started again then. What one that dies leaves of temporary files goes with
// this program.
export async function started(chromium, args = []) {
  const executablePath = execFileSync('which', ['chromium-headless-shell'], { encoding: 'utf8' }).trim();
  const temporary = mkdtempSync(join(tmpdir(), 'chromium-'));
  process.on('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }));
  const env = { ...process.env, TMPDIR: temporary };
  for (let left = 2; ; left--) {
    try {
      return await chromium.launch({ executablePath, env, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...args] });
    } catch (e) {
      if (left === 0) throw e;
      console.error(`Chromium is started again: ${String(e).split('\n')[0]}`);
    }
  }
}
