// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The view of linked accounts, which is a script of its own. It shares the page's own script as a whole.
import '../../main';
export { Connectors } from '../connectors';
