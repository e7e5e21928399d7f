// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/host/token"
)

// requestToken requests a token of a ServiceAccount.
func requestToken(t *testing.T, k kubernetes.Interface, ns, name string, change func(*authenticationv1.TokenRequestSpec)) *authenticationv1.TokenRequest {
	t.Helper()
	req := &authenticationv1.TokenRequest{}
	if change != nil {
		change(&req.Spec)
	}
	return mustT[*authenticationv1.TokenRequest](t)(k.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name, req, metav1.CreateOptions{}))
}

func account(t *testing.T, k kubernetes.Interface, ns, name string) *corev1.ServiceAccount {
	t.Helper()
	return mustT[*corev1.ServiceAccount](t)(k.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta(name)}, metav1.CreateOptions{}))
}

// subject names a ServiceAccount in a binding.
func subject(ns, name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// whoAmI returns the user as whom the server accepts a client; "" if it refuses
// the client.
func whoAmI(t *testing.T, k kubernetes.Interface) string {
	t.Helper()
	r, err := k.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.UserInfo.Username
}

func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	certPEM, keyPEM, err := s.host.PKI().IssueClient("jane", []string{"devs"})
	if err != nil {
		t.Fatal(err)
	}
	jane := s.bearer("")
	jane.CertData, jane.KeyData = certPEM, keyPEM
	for want, c := range map[string]*rest.Config{
		"platform-admin": s.admin(),
		"jane":           jane,
	} {
		if got := whoAmI(t, s.client(c)); got != want {
			t.Errorf("taken for %q, want %q", got, want)
		}
	}
	for name, c := range map[string]*rest.Config{"nobody": s.bearer(""), "stranger": s.bearer("abc"), "forger": s.bearer("a.b.c")} {
		if got := whoAmI(t, s.client(c)); got != "" {
			t.Errorf("%s is let in as %q", name, got)
		}
	}
	// A certificate of another authority is worthless.
	other := start(t, t.TempDir(), clock.RealClock{})
	foreign := s.bearer("")
	foreign.CertData, foreign.KeyData = other.admin().CertData, other.admin().KeyData
	if got := whoAmI(t, s.client(foreign)); got != "" {
		t.Errorf("a foreign certificate is let in as %q", got)
	}

	plain := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(t, s)}}}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/healthz": 200, "/version": 200, "/api": 401, "/api/v1/secrets": 401, "/metrics": 401, "/livez/ping": 401} {
		req := mustT[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil))
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != want {
			t.Errorf("anonymous GET %s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	// The token's clock stands still until the test moves it.
	c := testclock.NewFakeClock(time.Now())
	s := start(t, t.TempDir(), c)
	k := s.client(s.admin())
	review := func(text string, audiences ...string) authenticationv1.TokenReviewStatus {
		t.Helper()
		r, err := s.client(s.admin()).AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: text, Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Spec.Token != "" {
			t.Error("the token came back")
		}
		return r.Status
	}
	refused := func(what, text, why string) {
		t.Helper()
		if who := whoAmI(t, s.client(s.bearer(text))); who != "" {
			t.Errorf("%s: let in as %s", what, who)
		}
		if st := review(text); st.Authenticated || !strings.Contains(st.Error, why) {
			t.Errorf("%s: reviewed as %+v, want the reason %q", what, st, why)
		}
	}

	bot := account(t, k, "default", "bot")
	req := requestToken(t, k, "default", "bot", nil)
	if got := req.Status.ExpirationTimestamp.Sub(c.Now()); got > time.Hour || got < time.Hour-2*time.Second {
		t.Errorf("the default life is %v", got)
	}
	text := req.Status.Token
	if who := whoAmI(t, s.client(s.bearer(text))); who != "system:serviceaccount:default:bot" {
		t.Errorf("taken for %q", who)
	}
	st := review(text)
	if !st.Authenticated || st.User.UID != string(bot.UID) || !slices.Equal(st.Audiences, []string{token.DefaultIssuer}) ||
		!slices.Equal(st.User.Groups, []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}) ||
		len(st.User.Extra["authentication.kubernetes.io/credential-id"]) != 1 {
		t.Errorf("reviewed as %+v", st)
	}
	s.restart()
	k = s.client(s.admin())
	if who := whoAmI(t, s.client(s.bearer(text))); who == "" {
		t.Error("the token is worth nothing after a restart")
	}

	foreign := requestToken(t, k, "default", "bot", func(r *authenticationv1.TokenRequestSpec) { r.Audiences = []string{"vault"} }).Status.Token
	refused("foreign audience", foreign, "another audience")
	if st := review(foreign, "vault", "x"); !st.Authenticated || !slices.Equal(st.Audiences, []string{"vault"}) {
		t.Errorf("reviewed for its own audience as %+v", st)
	}

	c.Step(time.Hour)
	refused("expired", text, "expired")

	gone := requestToken(t, k, "default", "bot", nil).Status.Token
	if who := whoAmI(t, s.client(s.bearer(gone))); who == "" {
		t.Error("a fresh token is refused")
	}
	if err := k.CoreV1().ServiceAccounts("default").Delete(t.Context(), "bot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	refused("deleted account", gone, "no longer exists")
	account(t, k, "default", "bot")
	refused("account made again", gone, "no longer exists")
}

func TestBoundTokens(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	account(t, k, "default", "bot")
	mustT[*corev1.Secret](t)(k.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: meta("s")}, metav1.CreateOptions{}))
	uid := s.createTask("default", "t", "example.com/hold")
	bound := func(version, kind, name string, uid types.UID) func(*authenticationv1.TokenRequestSpec) {
		return func(r *authenticationv1.TokenRequestSpec) {
			r.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: version, Kind: kind, Name: name, UID: uid}
		}
	}
	own := "core.platform.ai/v1alpha1"

	bySecret := requestToken(t, k, "default", "bot", bound("v1", "Secret", "s", "")).Status.Token
	req := requestToken(t, k, "default", "bot", bound(own, "Task", "t", uid))
	if req.Spec.BoundObjectRef.UID != uid {
		t.Errorf("bound to %v", req.Spec.BoundObjectRef)
	}
	byTask := s.client(s.bearer(req.Status.Token))
	r := mustT[*authenticationv1.SelfSubjectReview](t)(byTask.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	for key, want := range map[string]string{v1alpha1.ExtraTaskName: "t", v1alpha1.ExtraTaskUID: string(uid), v1alpha1.ExtraTaskNamespace: "default"} {
		if got := r.Status.UserInfo.Extra[key]; len(got) != 1 || got[0] != want {
			t.Errorf("extra %s = %v, want %s", key, got, want)
		}
	}

	s.deleteTask("default", "t")
	if whoAmI(t, byTask) == "" {
		t.Error("refused while the task still waits for its finalizer")
	}
	s.releaseTask("default", "t")
	if who := whoAmI(t, byTask); who != "" {
		t.Errorf("let in as %s though the task is gone", who)
	}
	s.createTask("default", "t")
	if who := whoAmI(t, byTask); who != "" {
		t.Errorf("let in as %s though the task is another", who)
	}
	if err := k.CoreV1().Secrets("default").Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if who := whoAmI(t, s.client(s.bearer(bySecret))); who != "" {
		t.Errorf("let in as %s though the secret is gone", who)
	}

	for name, tt := range map[string]struct {
		change func(*authenticationv1.TokenRequestSpec)
		is     func(error) bool
	}{
		"old UID":      {bound(own, "Task", "t", uid), apierrors.IsConflict},
		"no such task": {bound(own, "Task", "x", ""), apierrors.IsNotFound},
		"a Pod":        {bound("v1", "Pod", "p", ""), apierrors.IsBadRequest},
		"too short":    {func(r *authenticationv1.TokenRequestSpec) { r.ExpirationSeconds = new(int64(599)) }, apierrors.IsInvalid},
	} {
		req := &authenticationv1.TokenRequest{}
		tt.change(&req.Spec)
		if _, err := k.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "bot", req, metav1.CreateOptions{}); !tt.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whoever may make tokens of an account does not act as a worker thereby.
	account(t, k, "default", "editor")
	mustT[*rbacv1.RoleBinding](t)(k.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta("editor"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}, Subjects: subject("default", "editor"),
	}, metav1.CreateOptions{}))
	editor := s.client(s.bearer(requestToken(t, k, "default", "editor", nil).Status.Token))
	requestToken(t, editor, "default", "bot", nil)
	for _, name := range []string{"t", "x"} {
		req := &authenticationv1.TokenRequest{}
		bound(own, "Task", name, "")(&req.Spec)
		if _, err := editor.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "bot", req, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("an editor asks for a token of task %s: %v", name, err)
		}
	}
	long := requestToken(t, k, "default", "bot", func(r *authenticationv1.TokenRequestSpec) { r.ExpirationSeconds = new(int64(1 << 30)) })
	if *long.Spec.ExpirationSeconds != 86400 {
		t.Errorf("the longest life is %d s", *long.Spec.ExpirationSeconds)
	}
}

// A new role or binding is effective for the next request, and so is its
// removal.
func TestPermissionsReadYourWrites(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	account(t, k, "default", "bot")
	bot := s.client(s.bearer(requestToken(t, k, "default", "bot", nil).Status.Token))
	may := func() bool {
		t.Helper()
		_, err := bot.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	want := func(ok bool, when string) {
		t.Helper()
		if may() != ok {
			t.Fatalf("%s: allowed is %v", when, !ok)
		}
	}
	rb, roles := k.RbacV1().RoleBindings("default"), k.RbacV1().ClusterRoles()
	for i := range 30 {
		want(false, "before")
		mustT[*rbacv1.RoleBinding](t)(rb.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta("b"), RoleRef: clusterRole("view"), Subjects: subject("", "bot")}, metav1.CreateOptions{}))
		want(true, "bound")
		mustT[*rbacv1.RoleBinding](t)(rb.Patch(t.Context(), "b", types.MergePatchType, []byte(`{"subjects":null}`), metav1.PatchOptions{}))
		want(false, "subject removed")
		mustT[*rbacv1.RoleBinding](t)(rb.Patch(t.Context(), "b", types.MergePatchType, []byte(`{"subjects":[{"kind":"ServiceAccount","name":"bot"}]}`), metav1.PatchOptions{}))
		want(true, "subject added")
		var err error
		if i%2 == 0 {
			err = rb.Delete(t.Context(), "b", metav1.DeleteOptions{})
		} else {
			err = rb.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// A role that others include.
	mustT[*rbacv1.ClusterRoleBinding](t)(k.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("b"), RoleRef: clusterRole("sum"), Subjects: subject("default", "bot"),
	}, metav1.CreateOptions{}))
	want(false, "the role does not exist")
	mustT[*rbacv1.ClusterRole](t)(roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta("sum"), AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"sum": "yes"}}},
	}}, metav1.CreateOptions{}))
	for range 10 {
		want(false, "nothing included")
		mustT[*rbacv1.ClusterRole](t)(roles.Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"sum": "yes"}},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
		}, metav1.CreateOptions{}))
		want(true, "included")
		if err := roles.Delete(t.Context(), "part", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAggregatedRulesAreShown(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	roles := s.client(s.admin()).RbacV1().ClusterRoles()
	w := mustT[watch.Interface](t)(roles.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=view"}))
	defer w.Stop()
	for e := range w.ResultChan() {
		r, ok := e.Object.(*rbacv1.ClusterRole)
		if ok && slices.ContainsFunc(r.Rules, func(p rbacv1.PolicyRule) bool { return slices.Contains(p.Resources, "tasks") }) {
			return
		}
	}
	t.Error("the watch ended")
}

func TestDefaultRolesAfterRestart(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	roles := s.client(s.admin()).RbacV1().ClusterRoles()
	r := mustT[*rbacv1.ClusterRole](t)(roles.Get(t.Context(), "platform-viewer", metav1.GetOptions{}))
	extra := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"things"}}
	r.Rules = []rbacv1.PolicyRule{extra}
	mustT[*rbacv1.ClusterRole](t)(roles.Update(t.Context(), r, metav1.UpdateOptions{}))
	if err := roles.Delete(t.Context(), "platform-editor", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.restart()
	roles = s.client(s.admin()).RbacV1().ClusterRoles()
	r = mustT[*rbacv1.ClusterRole](t)(roles.Get(t.Context(), "platform-viewer", metav1.GetOptions{}))
	if len(r.Rules) < 2 || fmt.Sprint(r.Rules[0]) != fmt.Sprint(extra) {
		t.Errorf("rules of platform-viewer: %v", r.Rules)
	}
	mustT[*rbacv1.ClusterRole](t)(roles.Get(t.Context(), "platform-editor", metav1.GetOptions{}))
}

// Only administrators may grant permissions, whatever RBAC allows.
func TestOnlyAdministratorsWriteRoles(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	account(t, k, "default", "boss")
	mustT[*rbacv1.ClusterRoleBinding](t)(k.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("boss"), RoleRef: clusterRole("cluster-admin"), Subjects: subject("default", "boss"),
	}, metav1.CreateOptions{}))
	boss := s.client(s.bearer(requestToken(t, k, "default", "boss", nil).Status.Token)).RbacV1()
	_, create := boss.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta("r")}, metav1.CreateOptions{})
	_, patch := boss.ClusterRoles().Patch(t.Context(), "view", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	for what, err := range map[string]error{
		"create": create, "patch": patch,
		"delete":            boss.ClusterRoleBindings().Delete(t.Context(), "boss", metav1.DeleteOptions{}),
		"delete collection": boss.ClusterRoles().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:masters") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := boss.Roles("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestQuestionsAboutAccess(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	mustT[*rbacv1.RoleBinding](t)(k.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta("b"), RoleRef: clusterRole("platform-viewer"), Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
	}, metav1.CreateOptions{}))
	attrs := func(verb, ns string) *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{Verb: verb, Namespace: ns, Group: "core.platform.ai", Resource: "tasks"}
	}
	impersonated := s.admin()
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	jane := s.client(impersonated)
	if who := whoAmI(t, jane); who != "jane" {
		t.Errorf("impersonated as %q", who)
	}
	for _, tt := range []struct {
		verb, ns string
		want     bool
	}{{"list", "default", true}, {"create", "default", false}, {"list", "kube-system", false}, {"list", "", false}} {
		self, err := jane.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attrs(tt.verb, tt.ns)},
		}, metav1.CreateOptions{})
		if err != nil || self.Status.Allowed != tt.want {
			t.Errorf("self %s in %q: %v, err %v", tt.verb, tt.ns, self.Status, err)
		}
		spec := authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: attrs(tt.verb, tt.ns)}
		sar, err := k.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil || sar.Status != self.Status {
			t.Errorf("about jane %s in %q: %v, err %v", tt.verb, tt.ns, sar.Status, err)
		}
		if tt.ns == "" {
			continue
		}
		local, err := k.AuthorizationV1().LocalSubjectAccessReviews(tt.ns).Create(t.Context(), &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: tt.ns}, Spec: spec,
		}, metav1.CreateOptions{})
		if err != nil || local.Status != self.Status {
			t.Errorf("locally about jane %s in %q: %v, err %v", tt.verb, tt.ns, local.Status, err)
		}
	}
	rules, err := jane.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
	}, metav1.CreateOptions{})
	if err != nil || rules.Status.Incomplete || !slices.ContainsFunc(rules.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool {
		return slices.Contains(r.Resources, "tasks") && !slices.Contains(r.Verbs, "create")
	}) {
		t.Errorf("rules of jane: %v, err %v", rules, err)
	}
	if _, err := k.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an empty question: %v", err)
	}

	// A user without permission cannot impersonate somebody else.
	account(t, k, "default", "bot")
	bot := s.bearer(requestToken(t, k, "default", "bot", nil).Status.Token)
	bot.Impersonate = rest.ImpersonationConfig{UserName: "platform-admin", Groups: []string{"system:masters"}}
	if _, err := s.client(bot).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("impersonation of the administrator: %v", err)
	}
}
