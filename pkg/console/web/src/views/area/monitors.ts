// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The views of repository monitors, which are a script of their own. It shares the page's own script as a whole.
import '../../main';
export { MonitorView } from '../monitor';
export { MonitorItemView } from '../monitoritem';
export { Monitors } from '../monitors';
