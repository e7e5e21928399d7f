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
import { ahead } from './api/client';
import { remembered, signIn } from './api/session';
import { listen } from './keys';
import { location, startRouter } from './router';
import { startTheme } from './theme';
import { Shell } from './ui/shell';
import { reads } from './views/views';

startTheme();
startRouter();
listen();
const root = document.getElementById('app');
// Who was here before sees the views at once; what their session may read is asked for meanwhile.
const known = remembered();
const session = signIn();
if (known) ahead(reads(location.value));
if (root && (known || (await session))) {
  root.textContent = '';
  render(<Shell />, root);
}
