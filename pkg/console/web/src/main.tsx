// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The console's page. A view is a file in views/ and a line in views/views.ts.
import { render } from 'preact';
import './style/base.css';
import './style/shell.css';
import './style/parts.css';
import './style/run.css';
import './style/approvals.css';
import './style/session.css';
import './style/tasks.css';
import { remembered, signIn } from './api/session';
import { listen } from './keys';
import { startRouter } from './router';
import { startTheme } from './theme';
import { Shell } from './ui/shell';

startTheme();
startRouter();
listen();
const root = document.getElementById('app');
// Who was here before sees the views at once. What these read first was asked for by boot.ts.
const known = remembered();
const session = signIn();
if (root && (known || (await session))) {
  root.textContent = '';
  render(<Shell />, root);
}
