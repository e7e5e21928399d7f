// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// scoped is a request with the families of scopes that it needs, all of them. Without any, no scope covers it.
type scoped struct{ method, path, body, needs string }

var scopedRequests = []scoped{
	{http.MethodPost, "/api/v1/tasks", `{"name":"NEW","type":"container","command":["true"]}`, "tasks:create"},
	{http.MethodGet, "/api/v1/tasks", "", "tasks:list"},
	{http.MethodGet, "/api/v1/tasks/a", "", "tasks:get"},
	{http.MethodGet, "/api/v1/tasks/a/trace", "", "tasks:get"},
	{http.MethodGet, "/api/v1/tasks/a/approvals", "", "tasks:get"},
	{http.MethodPost, "/api/v1/tasks/a/fork", `{"newTaskName":"NEW"}`, "tasks:get tasks:create"},
	{http.MethodDelete, "/api/v1/tasks/none", "", "tasks:delete"},
	{http.MethodGet, "/api/v1/agents", "", "agents:read"},
	{http.MethodPost, "/api/v1/agents", `{"metadata":{"name":"NEW"},"spec":{"providerRef":{"name":"p"}}}`, "agents:write"},
	{http.MethodGet, "/api/v1/skills", "", "skills:read"},
	{http.MethodDelete, "/api/v1/skills/none", "", "skills:write"},
	{http.MethodGet, "/api/v1/tools", "", "tools:read"},
	{http.MethodGet, "/api/v1/providers", "", "providers:use"},
	{http.MethodGet, "/api/v1/memories", "", "memory:read"},
	{http.MethodPost, "/api/v1/memories", `{"content":"c"}`, "memory:write"},
	{http.MethodGet, "/api/v1/sessions", "", "sessions:read"},
	{http.MethodPost, "/api/v1/chat", `{"message":"m","provider":"none"}`, "sessions:write providers:use"},
	{http.MethodGet, "/api/v1/chat/config", "", "providers:use"},
	{http.MethodPost, "/openai/v1/chat/completions", `{"model":"none/m","messages":[{"role":"user","content":"h"}]}`, "sessions:write providers:use"},
	{http.MethodPost, "/anthropic/v1/messages", `{"model":"none/m","max_tokens":9,"messages":[{"role":"user","content":"h"}]}`, "sessions:write providers:use"},
	{http.MethodGet, "/anthropic/v1/models", "", "providers:use"},
	{http.MethodGet, "/api/v1/usage", "", ""},
}

// In mode enforce a transaction token permits what its scopes cover and its roles permit. In modes off and audit the roles
// alone count, and audit counts what enforce would refuse.
func TestScopes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{external.ModeOff, external.ModeAudit, external.ModeEnforce} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			metrics := prometheus.NewRegistry()
			i, s := scopes(t, mode, metrics)
			families := map[string]bool{}
			for _, r := range scopedRequests {
				for f := range strings.FieldsSeq(r.needs) {
					families[f] = true
				}
			}
			n := 0
			ask := func(r scoped, scope string) (int, string) {
				n++
				body := strings.ReplaceAll(r.body, "NEW", "new-"+strings.Repeat("x", n))
				return s.send(r.method, r.path, body, "Txn-Token", i.transaction("user-1", object{"scope": scope}))
			}
			for _, r := range scopedRequests {
				for missing := range families { // all scopes but one
					all := []string{"other"}
					for f := range families {
						if f != missing {
							all = append(all, "platform:"+f)
						}
					}
					covered := r.needs != "" && !strings.Contains(" "+r.needs+" ", " "+missing+" ")
					code, answer := ask(r, strings.Join(all, " "))
					if refused := code == http.StatusForbidden; refused != (mode == external.ModeEnforce && !covered) {
						t.Errorf("%s %s without %s: %d %s", r.method, r.path, missing, code, answer)
					} else if refused && r.needs != "" && !strings.Contains(answer, "lacks the scope platform:"+missing) {
						t.Errorf("%s %s without %s: %s", r.method, r.path, missing, answer)
					}
				}
				if r.needs == "" {
					continue
				}
				if code, answer := ask(r, "platform:"+strings.ReplaceAll(r.needs, " ", " platform:")); code == http.StatusForbidden || code == http.StatusUnauthorized {
					t.Errorf("%s %s with %s: %d %s", r.method, r.path, r.needs, code, answer)
				}
			}
			// What every task relies on is not changed with such a token, in any mode.
			for _, r := range []scoped{
				{http.MethodPost, "/api/v1/providers", `{"metadata":{"name":"p2"},"spec":{"type":"openai","secretRef":{"name":"s"}}}`, ""},
				{http.MethodDelete, "/api/v1/tools/none", "", ""},
			} {
				if code, answer := ask(r, "platform:tools:use platform:providers:use platform:tools:read"); code != http.StatusForbidden || !strings.Contains(answer, "cannot be changed with a transaction token") {
					t.Errorf("%s %s: %d %s", r.method, r.path, code, answer)
				}
			}
			counted := map[string]float64{} // by the name of the metric and its labels
			for _, family := range must(metrics.Gather())(t) {
				for _, m := range family.Metric {
					name := family.GetName()
					for _, l := range m.Label {
						name += " " + l.GetValue()
					}
					counted[name] = m.GetCounter().GetValue()
				}
			}
			if denied := counted["platform_context_token_denied_total "+mode]; (denied > 0) != (mode != external.ModeOff) {
				t.Errorf("%v refusals are counted", denied)
			}
			result := map[string]string{external.ModeOff: " allowed", external.ModeAudit: "scope audited", external.ModeEnforce: "scope denied"}[mode]
			for _, name := range []string{
				"platform_context_token_auth_total transaction-token success",
				"platform_context_token_authorization_total tasks:list " + result,
				"platform_context_token_authorization_total other never denied",
			} {
				if counted[name] == 0 {
					t.Errorf("%s is 0", name)
				}
			}
		})
	}
}

// scopes starts a server where transactions in namespace team have the roles of an editor.
func scopes(t *testing.T, mode string, metrics prometheus.Registerer) (*issuer, *server) {
	t.Helper()
	i := newIssuer(t)
	o := i.options(mode)
	o.OIDC.Namespace = "team"
	s := &server{t: t, Server: standalone.Start(t, func(to *standalone.Options) { to.Identity, to.Metrics = o, metrics })}
	s.Namespaces(t, "team", "other")
	s.bind("team", "platform-editor", external.GroupContextToken)
	s.bind("other", "platform-editor", external.GroupContextToken)
	s.bind("team", "platform-editor", external.GroupOIDC)
	s.await(func() bool {
		code, _ := s.send(http.MethodGet, "/api/v1/tasks", "", "Authorization", "Bearer "+i.token("user-1"))
		return code == http.StatusOK
	})
	s.create("a", "Authorization", "Bearer "+i.token("user-1"))
	return i, s
}
