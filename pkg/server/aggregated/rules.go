// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// atOnce is how many questions of one review the cluster is asked at the same time.
const atOnce = 8

// asked finds the rules of a user by asking the cluster, which only answers about single requests. It asks about the
// platform's own resources, for clients such as the web console that connect directly to this server and offer only what
// would not be refused. The authorizer remembers the answers for some seconds.
type asked struct {
	authorizer.UnconditionalAuthorizer
	resources []resource.Resource
}

// RulesFor returns what a user may do with the resources in a namespace. Rules about single objects are not found, so the
// list is marked as incomplete.
func (a asked) RulesFor(ctx context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	questions := a.questions(u, namespace)
	allowed := make([]bool, len(questions))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, q := range questions {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			decision, _, err := a.Authorize(ctx, q)
			allowed[i] = err == nil && decision == authorizer.DecisionAllow
		})
	}
	wg.Wait()
	rules := []authorizer.ResourceRuleInfo{}
	for i, q := range questions {
		if !allowed[i] {
			continue
		}
		name := q.Resource
		if q.Subresource != "" {
			name += "/" + q.Subresource
		}
		rules = append(rules, &authorizer.DefaultResourceRuleInfo{Verbs: []string{q.Verb}, APIGroups: []string{q.APIGroup}, Resources: []string{name}})
	}
	return rules, nil, true, ctx.Err()
}

func (a asked) questions(u user.Info, namespace string) []authorizer.AttributesRecord {
	var all []authorizer.AttributesRecord
	add := func(name, subresource string, verbs ...string) {
		for _, verb := range verbs {
			all = append(all, authorizer.AttributesRecord{
				User: u, ResourceRequest: true, Verb: verb, Namespace: namespace,
				APIGroup: v1alpha1.GroupName, APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: name, Subresource: subresource,
			})
		}
	}
	for _, r := range a.resources {
		gvr := r.GroupVersionResource()
		if gvr.Group != v1alpha1.GroupName {
			continue
		}
		add(gvr.Resource, "", "get", "list", "create", "update", "delete")
		for _, g := range r.Grants() {
			_, subresource, _ := strings.Cut(g.Resource, "/")
			add(gvr.Resource, subresource, "get", "create")
		}
	}
	return all
}
