// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/tokenservice"
)

// accounts is a provider of accounts, and an issuer of the tokens of people.
type accounts struct {
	provider *oauthprovider.Provider
	issuer   *tokenservice.Service
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	return &accounts{provider: oauthprovider.New(t), issuer: tokenservice.New(t)}
}

// accountsAt is the address that browsers know the server by.
const accountsAt = "https://platform.test"

// configure lets people into namespace default, who may link accounts.
func (a *accounts) configure(o *standalone.Options) {
	o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, accountsAt, a.provider.Transport()
	o.Identity.OIDC = external.OIDC{Issuer: a.issuer.URL, Audience: "platform", JWKSURL: a.issuer.URL, AllowedSubjects: []string{"user-*"}, Namespace: "default"}
}

// connections calls the operations about accounts as a person, with two providers for a second page.
func (r *replay) connections(a *accounts, s *standalone.Server) {
	r.t.Helper()
	c, k := s.Core(r.t), s.Kubernetes(r.t)
	kit.Must[*rbacv1.RoleBinding](r.t)(k.RbacV1().RoleBindings("default").Create(r.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "people"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-editor"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: external.GroupOIDC}},
	}, metav1.CreateOptions{}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: oauthprovider.Secret}, StringData: map[string]string{"secret": oauthprovider.ClientSecret}}
	kit.Must[*corev1.Secret](r.t)(k.CoreV1().Secrets("default").Create(r.t.Context(), secret, metav1.CreateOptions{}))
	provider := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(oauthprovider.Manifest()), provider); err != nil {
		r.t.Fatal(err)
	}
	first := provider.Name
	for _, name := range []string{first, "second"} {
		provider.Name, provider.Namespace = name, "default"
		made := kit.Must[*v1alpha1.ConnectorProvider](r.t)(c.ConnectorProviders("default").Create(r.t.Context(), provider, metav1.CreateOptions{}))
		for _, met := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} { // no controller runs here
			meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{Type: met, Status: metav1.ConditionTrue, Reason: "Tried", ObservedGeneration: made.Generation})
		}
		kit.Must[*v1alpha1.ConnectorProvider](r.t)(c.ConnectorProviders("default").UpdateStatus(r.t.Context(), made, metav1.UpdateOptions{}))
	}
	person := r.nobody.With("Authorization", "Bearer "+kit.Must[string](r.t)(a.issuer.Sign("at+jwt", tokenservice.Claims{"sub": "user-1"})))
	kit.Await(r.t, "the keys of the issuer", func() bool { return person.Get("/api/v1/auth/whoami").Code == http.StatusOK })

	const all = "/api/v1/connections"
	person.Post(all, `{"provider":"second"}`).Want(r.t, http.StatusCreated)
	r.call(person, http.MethodPost, all, `{"provider":"`+first+`"}`)
	begun := host.Decode[struct {
		Connection   struct{ Name string }
		AuthorizeURL string
	}](r.t, person.Post(all, `{"provider":"`+first+`"}`).Want(r.t, http.StatusCreated))
	one := all + "/" + begun.Connection.Name
	r.call(person, http.MethodPut, one, `{"mode":"readOnly"}`)
	r.call(person, http.MethodPost, one+"/authorize", "")
	begun.AuthorizeURL = host.Decode[struct{ AuthorizeURL string }](r.t, person.Post(one+"/authorize", "").Want(r.t, http.StatusOK)).AuthorizeURL
	r.call(person, http.MethodPost, one+"/complete", `{"completion":"`+r.consent(a, begun.AuthorizeURL)+`"}`)
	r.call(person, http.MethodGet, "/api/v1/connectors", "")
	r.call(person, http.MethodGet, all, "")
	r.call(person, http.MethodGet, one, "")
	r.tool(s, person, begun.Connection.Name)
	r.call(person, http.MethodDelete, one, "")
}

// tool calls a tool with the account of a person, as the run of a task that the person has asked for.
func (r *replay) tool(s *standalone.Server, person *standalone.Client, connection string) {
	r.t.Helper()
	ctx, c := r.t.Context(), s.Core(r.t)
	person.Post("/api/v1/tasks", `{"name":"finds","type":"ai","prompt":"Go.","ai":{"tools":["find"]}}`).Want(r.t, http.StatusCreated)
	task := kit.Must[*v1alpha1.Task](r.t)(c.Tasks("default").Get(ctx, "finds", metav1.GetOptions{}))
	worker := r.nobody.With("Authorization", "Bearer "+s.WorkerToken(r.t, "default", task.Name, task.UID))
	task = kit.Must[*v1alpha1.Task](r.t)(c.Tasks("default").Get(ctx, "finds", metav1.GetOptions{}))
	live := kit.Must[*v1alpha1.Connection](r.t)(c.Connections("default").Get(ctx, connection, metav1.GetOptions{}))
	provider := kit.Must[*v1alpha1.ConnectorProvider](r.t)(c.ConnectorProviders("default").Get(ctx, live.Spec.ProviderRef.Name, metav1.GetOptions{}))
	task.Status.ConnectionBindings = []v1alpha1.TaskConnectionBinding{{
		Tool: "find", ConnectorProvider: provider.Name, ToolDigest: connector.ToolDigest(connector.HTTPTool(provider, "find")),
		Connection: live.Name, ConnectionUID: live.UID, GrantSequence: live.Status.GrantSequence, AuthorityDigest: live.Status.Consent.AuthorityDigest,
	}}
	kit.Must[*v1alpha1.Task](r.t)(c.Tasks("default").UpdateStatus(ctx, task, metav1.UpdateOptions{}))
	if got := r.call(worker, http.MethodPost, "/internal/v1/tasks/default/finds/connector-tools/find", `{"arguments":{"q":"x"}}`); !strings.Contains(got.Body, `"q":"x"`) {
		r.t.Errorf("find: %s", got.Body)
	}
}

// consent has a browser give consent and come back, and returns the token that completes it.
func (r *replay) consent(a *accounts, authorizeURL string) string {
	r.t.Helper()
	back := kit.Must[*url.URL](r.t)(url.Parse(a.provider.Consent(r.t, authorizeURL)))
	browser := *r.nobody
	browser.HTTP = &http.Client{Transport: r.nobody.HTTP.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp := browser.Open(r.t.Context(), http.MethodGet, back.RequestURI(), "")
	defer resp.Body.Close()
	to := kit.Must[*url.URL](r.t)(resp.Location())
	token, ok := strings.CutPrefix(to.Fragment, "completion=")
	if !ok {
		r.t.Fatalf("callback leads to %s", to)
	}
	return token
}
