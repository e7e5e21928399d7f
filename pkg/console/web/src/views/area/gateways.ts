// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The views of gateways, which are a script of their own. It shares the page's own script as a whole.
import '../../main';
export { ConversationView } from '../conversation';
export { GatewayView } from '../gateway';
export { Gateways } from '../gateways';
