// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// resourceRule parses "verbs groups resources names". Lists use commas, "-" is
// an empty list and "" the core group.
func resourceRule(t *testing.T, s string) *rbacv1.PolicyRule {
	t.Helper()
	f := strings.Fields(s)
	if len(f) != 4 {
		t.Fatalf("rule %q", s)
	}
	list := func(s string) []string {
		if s == "-" {
			return nil
		}
		return strings.Split(strings.ReplaceAll(s, `""`, ""), ",")
	}
	return &rbacv1.PolicyRule{Verbs: list(f[0]), APIGroups: list(f[1]), Resources: list(f[2]), ResourceNames: list(f[3])}
}

// resourceRequest parses "verb group resource[/subresource] name"; "-" means no
// name.
func resourceRequest(s string) authorizer.AttributesRecord {
	f := strings.Fields(s)
	a := authorizer.AttributesRecord{Verb: f[0], APIGroup: strings.ReplaceAll(f[1], `""`, ""), ResourceRequest: true}
	a.Resource, a.Subresource, _ = strings.Cut(f[2], "/")
	if f[3] != "-" {
		a.Name = f[3]
	}
	return a
}

func TestResourceRules(t *testing.T) {
	tests := []struct {
		rule    string
		request string
		want    bool
	}{
		{`get "" pods -`, `get "" pods -`, true},
		{`get "" pods -`, `get "" pods x`, true},
		{`get "" pods -`, `list "" pods -`, false},
		{`get "" pods -`, `GET "" pods -`, false},
		{`get,list "" pods -`, `list "" pods -`, true},
		{`* "" pods -`, `anything "" pods -`, true},
		{`g* "" pods -`, `get "" pods -`, false},
		{`get apps pods -`, `get "" pods -`, false},
		{`get * pods -`, `get apps pods -`, true},
		{`get "" * -`, `get "" pods -`, true},
		{`get "" * -`, `get "" pods/log -`, true},
		{`get "" * -`, `get apps pods -`, false},
		{`* * * -`, `get apps pods/log x`, true},

		{`get "" pods -`, `get "" pods/log -`, false},
		{`get "" pods/log -`, `get "" pods/log -`, true},
		{`get "" pods/log -`, `get "" pods -`, false},
		{`get "" pods/log -`, `get "" pods/status -`, false},
		{`get "" pods/log -`, `get "" nodes/log -`, false},
		{`get "" */log -`, `get "" pods/log -`, true},
		{`get "" */log -`, `get "" pods -`, false},
		{`get "" */log -`, `get "" pods/logs -`, false},
		{`get "" */log -`, `get "" pods/xlog -`, false},
		{`get "" */* -`, `get "" pods/log -`, false},
		{`get "" pods/* -`, `get "" pods/log -`, false},
		{`get "" pods/* -`, `get "" pods -`, false},

		{`get "" pods a,b`, `get "" pods a`, true},
		{`get "" pods a,b`, `get "" pods b`, true},
		{`get "" pods a,b`, `get "" pods c`, false},
		// A list has no name, so a rule for names does not allow it.
		{`list "" pods a`, `list "" pods -`, false},
		{`get "" pods *`, `get "" pods a`, false},
		{`get "" pods/log a`, `get "" pods/log a`, true},

		{`- "" pods -`, `get "" pods -`, false},
		{`get - pods -`, `get "" pods -`, false},
		{`get "" - -`, `get "" pods -`, false},
	}
	for _, tt := range tests {
		t.Run(tt.rule+" | "+tt.request, func(t *testing.T) {
			if got := allows(resourceRule(t, tt.rule), resourceRequest(tt.request)); got != tt.want {
				t.Errorf("allowed = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestURLRules(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"*", "/any/thing", true},
		{"/metrics", "/metrics", true},
		{"/metrics", "/metrics/", false},
		{"/metrics", "/metricsx", false},
		{"/apis/*", "/apis/x", true},
		{"/apis/*", "/apis/", true},
		{"/apis/*", "/apis", false},
		{"/api*", "/apis/x", true},
		{"/api**", "/api", true},
		{"/a/*/c", "/a/b/c", false},
		{"/a/*/c", "/a/*/c", true},
		{"", "/x", false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q %q", tt.pattern, tt.path), func(t *testing.T) {
			r := urls("get", tt.pattern)
			for verb, want := range map[string]bool{"get": tt.want, "post": false} {
				a := authorizer.AttributesRecord{Verb: verb, Path: tt.path}
				if got := allows(&r, a); got != want {
					t.Errorf("%s allowed = %v, want %v", verb, got, want)
				}
			}
			a := authorizer.AttributesRecord{Verb: "get", Path: tt.path, ResourceRequest: true}
			if allows(&r, a) {
				t.Error("a URL rule allows a resource request")
			}
		})
	}
	everything := rule([]string{"*"}, "*", "*")
	if allows(&everything, authorizer.AttributesRecord{Verb: "get", Path: "/metrics"}) {
		t.Error("a resource rule allows a URL request")
	}
}
