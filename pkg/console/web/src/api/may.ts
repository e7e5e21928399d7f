// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the viewer may do, so that no button is shown that would be refused. The server decides in any case.
import { signal } from '@preact/signals';
import { namespace } from '../router';
import { group, post } from './client';

interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
}

const rules = new Map<string, ReturnType<typeof signal<Rule[] | null>>>();

// may reports whether the viewer may use a verb of a resource, such as approvals/decision, in the namespace that is shown.
// It is undefined until the rules are known.
export function may(verb: string, resource: string): boolean | undefined {
  const ns = namespace();
  let known = rules.get(ns);
  if (!known) {
    known = signal<Rule[] | null>(null);
    rules.set(ns, known);
    void load(ns, known);
  }
  const any = (list: string[] | undefined, value: string) => (list ?? []).some((v) => v === '*' || v === value || (v.startsWith('*/') && value.endsWith(v.slice(1))));
  return known.value?.some((r) => any(r.verbs, verb) && any(r.apiGroups, group.split('/')[2] ?? '') && any(r.resources, resource));
}

async function load(ns: string, known: ReturnType<typeof signal<Rule[] | null>>): Promise<void> {
  try {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: ns } };
    const r = await post<{ status: { resourceRules?: Rule[]; incomplete?: boolean } }>('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', review);
    // A cluster's authorizer may be unable to list its rules. Then everything is offered.
    known.value = r.status.incomplete && !r.status.resourceRules?.length ? everything : (r.status.resourceRules ?? []);
  } catch {
    known.value = everything; // the server says no where it has to
  }
}

const everything: Rule[] = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }];
