// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All views. The first whose path matches is shown. Those of an area that few people look at are a script of their own (area/).
import type { ComponentType } from 'preact';
import { later } from '../ui/later';
import { Approvals } from './approvals';
import { Catalogue } from './catalogue';
import { CatalogueEntry } from './catalogueentry';
import { Compare } from './compare';
import { Memories } from './memories';
import { NewTask } from './newtask';
import { Now } from './now';
import { Run } from './run';
import { SessionView } from './session';
import { Sessions } from './sessions';
import { Tasks } from './tasks';
import { Tree } from './tree';
import { Usage } from './usage';

export interface View {
  path: string; // :name is a parameter
  title: string;
  key?: string; // the letter after g
  nav?: boolean; // whether the navigation shows it
  component: ComponentType<{ params: Record<string, string> }>;
}

const { Monitors, MonitorView, MonitorItemView } = later('the monitors', ['Monitors', 'MonitorView', 'MonitorItemView'], () => import('./area/monitors'));
const { Gateways, GatewayView, ConversationView } = later('the gateways', ['Gateways', 'GatewayView', 'ConversationView'], () => import('./area/gateways'));
const { Connectors } = later('the connectors', ['Connectors'], () => import('./area/connectors'));

export const views: View[] = [
  { path: '/', title: 'Now', key: 'n', nav: true, component: Now },
  { path: '/tasks', title: 'Tasks', key: 't', nav: true, component: Tasks },
  { path: '/tasks/:name', title: 'Run', component: Run },
  { path: '/new', title: 'New task', component: NewTask },
  { path: '/tree/:name', title: 'Tree', component: Tree },
  { path: '/approvals', title: 'Approvals', key: 'a', nav: true, component: Approvals },
  { path: '/approvals/:name', title: 'Approval', component: Approvals },
  { path: '/sessions', title: 'Sessions', key: 's', nav: true, component: Sessions },
  { path: '/sessions/:name', title: 'Session', component: SessionView },
  { path: '/chat', title: 'New chat', component: SessionView },
  { path: '/usage', title: 'Usage', key: 'u', nav: true, component: Usage },
  { path: '/catalogue', title: 'Catalogue', key: 'c', nav: true, component: Catalogue },
  { path: '/catalogue/:kind/:name', title: 'Catalogue', component: CatalogueEntry },
  { path: '/compare', title: 'Compare', component: Compare },
  { path: '/memory', title: 'Memory', key: 'm', nav: true, component: Memories },
  { path: '/monitors', title: 'Monitors', key: 'r', nav: true, component: Monitors },
  { path: '/monitors/:name', title: 'Monitor', component: MonitorView },
  { path: '/monitors/:monitor/:name', title: 'Monitored', component: MonitorItemView },
  { path: '/gateways', title: 'Gateways', key: 'w', nav: true, component: Gateways },
  { path: '/gateways/:name', title: 'Gateway', component: GatewayView },
  { path: '/gateways/:gateway/:name', title: 'Conversation', component: ConversationView },
  { path: '/settings/connectors', title: 'Connectors', key: 'o', nav: true, component: Connectors },
];
