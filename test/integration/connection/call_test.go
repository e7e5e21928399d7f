// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/quickclock"
	"github.com/platform-ai/platform/test/tokenservice"
)

// newCalls returns a world without controllers, in which tests say what these have decided.
func newCalls(t *testing.T) *world {
	t.Helper()
	w := &world{tokens: tokenservice.New(t), clock: &quickclock.Ahead{}, metrics: prometheus.NewRegistry(), provider: oauthprovider.New(t)}
	w.Platform = &standalone.Platform{T: t, Server: standalone.Start(t, standalone.OnAPort(t), func(o *standalone.Options) {
		o.Clock, o.Metrics = w.clock, w.metrics
		o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, base, w.provider.Transport()
		o.Identity = identity(w.tokens.URL)
	})}
	w.Namespaces(t, "team")
	w.secret()
	w.people()
	p := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(oauthprovider.Manifest()), p); err != nil {
		t.Fatal(err)
	}
	kit.Must[*v1alpha1.ConnectorProvider](t)(w.API().ConnectorProviders("team").Create(t.Context(), p, metav1.CreateOptions{}))
	w.accept()
	return w
}

// people lets the people of the issuer work in namespace team.
func (w *world) people() {
	w.T.Helper()
	for _, role := range []string{"platform-editor", "platform-approver"} {
		kit.Must[*rbacv1.RoleBinding](w.T)(w.Kubernetes(w.T).RbacV1().RoleBindings("team").Create(w.T.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "people-" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: external.GroupOIDC}},
		}, metav1.CreateOptions{}))
	}
}

// accept writes what the controller writes about the provider as it is.
func (w *world) accept() {
	w.T.Helper()
	all := w.API().ConnectorProviders("team")
	p := kit.Must[*v1alpha1.ConnectorProvider](w.T)(all.Get(w.T.Context(), "provider", metav1.GetOptions{}))
	for _, met := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: met, Status: metav1.ConditionTrue, Reason: "Tried", ObservedGeneration: p.Generation})
	}
	kit.Must[*v1alpha1.ConnectorProvider](w.T)(all.UpdateStatus(w.T.Context(), p, metav1.UpdateOptions{}))
}

// change changes the provider, which stays accepted.
func (w *world) change(f func(*v1alpha1.ConnectorProvider)) {
	w.T.Helper()
	all := w.API().ConnectorProviders("team")
	p := kit.Must[*v1alpha1.ConnectorProvider](w.T)(all.Get(w.T.Context(), "provider", metav1.GetOptions{}))
	f(p)
	kit.Must[*v1alpha1.ConnectorProvider](w.T)(all.Update(w.T.Context(), p, metav1.UpdateOptions{}))
	w.accept()
}

const text = `{"text":"hello"}`

// A call that writes is made once for its approval, whoever repeats it and how often, and the answer stays the same byte for byte.
func TestEffectIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newCalls(t)
	ann := w.person("user-ann")
	linked := w.linked(ann, "readWrite")
	r := w.running(ann, "writes")

	reserved := r.call("note", text, "")
	if again := r.call("note", text, ""); again.Effect != reserved.Effect {
		t.Errorf("reserved twice: %s %s", reserved.Effect, again.Effect)
	}
	if e := w.effect(reserved.Effect); e.Status.State != v1alpha1.ToolEffectPending || e.Spec.Connection.GrantSequence != 1 || e.Spec.TimeoutSeconds != 30 {
		t.Errorf("reserved: %+v %+v", e.Spec, e.Status)
	}
	id := r.ask(text, reserved.Effect)
	r.fails("note", text, id, v1alpha1.ConnectorDenied, "the approval is pending")
	r.fails("note", text, strings.Repeat("0", 64), v1alpha1.ConnectorDenied, "has no approval")
	r.post("note", text, "x").Problem(t, http.StatusBadRequest, "approvalId")
	if n := len(w.provider.Calls()); n != 0 {
		t.Fatalf("%d requests before the approval", n)
	}
	r.approve(id)

	const callers = 32
	var all sync.WaitGroup
	answers := make([]host.Answer, callers)
	for i := range callers {
		all.Go(func() { answers[i] = r.post("note", text, id) })
	}
	all.Wait()
	first := r.call("note", text, id)
	if !first.Replayed || len(first.Result) == 0 {
		t.Fatalf("replayed: %+v %+v", first, first.Failure)
	}
	made := 0
	for _, a := range answers {
		if a.Code == http.StatusConflict { // another one of them was under way
			continue
		}
		got := host.Decode[outcome](t, a.Want(t, http.StatusOK))
		if string(got.Result) != string(first.Result) {
			t.Errorf("answers differ: %s %s", got.Result, first.Result)
		}
		if !got.Replayed {
			made++
		}
	}
	calls := w.provider.Calls()
	if made != 1 || len(calls) != 1 || calls[0].Body != text || calls[0].Header.Get("Idempotency-Key") != id {
		t.Errorf("made %d times, calls %+v", made, calls)
	}
	// What was done stays done, also if the person disconnects then.
	ann.Do(http.MethodDelete, "/api/v1/connections/"+linked.Name, "").Want(t, http.StatusNoContent)
	if again := r.call("note", text, id); !again.Replayed || string(again.Result) != string(first.Result) {
		t.Errorf("after the disconnection: %+v %+v", again, again.Failure)
	}
	r.fails("note", text, "", v1alpha1.ConnectorUnavailable, "being deleted")
	e := w.effect(reserved.Effect)
	if s := e.Status; s.State != v1alpha1.ToolEffectSucceeded || s.ApprovalID != id || s.Attempts != 1 || s.ResponseStatus != http.StatusOK || s.ResponseBytes == 0 {
		t.Errorf("effect: %+v", s)
	}
	w.leaked(w.provider.Secrets())
}

// An approval is for one tool, one connection, one consent and exact arguments. If one of them is another one when the call is made, nothing is
// sent.
func TestApprovalBindsTheCall(t *testing.T) {
	t.Parallel()
	w := newCalls(t)
	ann := w.person("user-ann")
	linked := w.linked(ann, "readWrite")

	r := w.running(ann, "arguments")
	id, effect := r.approved(text)
	r.fails("note", `{"text":"hellp"}`, id, v1alpha1.ConnectorDenied, "other arguments")
	r.fails("find", text, id, v1alpha1.ConnectorDenied, `is for "note"`)
	other := w.running(ann, "others")
	other.fails("note", text, id, v1alpha1.ConnectorDenied, "has no approval")
	// An approval of an effect that was reserved for something else, and one that names none.
	for effect, why := range map[string]string{
		r.call("note", `{"text":"hellp"}`, "").Effect: "it differs in the arguments", other.call("note", text, "").Effect: "it differs in the task",
		"effect-0": "does not exist", "": "names no effect",
	} {
		lying := r.ask(text, effect)
		r.approve(lying)
		r.fails("note", text, lying, v1alpha1.ConnectorDenied, why)
	}
	r.fails("note", `{"text":1}`, "", v1alpha1.ConnectorInvalidArguments, "text")
	r.fails("nosuch", text, "", v1alpha1.ConnectorDenied, "is no tool")

	// The tool, and then how long it may take.
	w.change(func(p *v1alpha1.ConnectorProvider) { p.Spec.Tools[1].Description += "." })
	r.fails("note", text, id, v1alpha1.ConnectorDenied, "note has changed since the run was started")
	w.change(func(p *v1alpha1.ConnectorProvider) {
		p.Spec.Tools[1].Description = "Notes."
		p.Spec.Tools[1].HTTP.Timeout = v1alpha1.DurationOf(31 * time.Second)
	})
	r.fails("note", text, id, v1alpha1.ConnectorDenied, "note has changed since the run was started")
	w.change(func(p *v1alpha1.ConnectorProvider) { p.Spec.Tools[1].HTTP.Timeout = nil })

	// The generation of the connection: it was narrowed and widened again.
	for _, mode := range []string{"readOnly", "readWrite"} {
		ann.Do(http.MethodPut, "/api/v1/connections/"+linked.Name, `{"mode":"`+mode+`"}`).Want(t, http.StatusOK)
	}
	r.fails("note", text, id, v1alpha1.ConnectorDenied, "it differs in the connection")
	// The consent.
	again := w.running(ann, "consents")
	id, _ = again.approved(text)
	w.linked(ann, "readWrite")
	again.fails("note", text, id, v1alpha1.ConnectorConsentRequired, "was connected anew")
	if n := len(w.provider.Calls()); n != 0 {
		t.Errorf("%d requests", n)
	}
	if e := w.effect(effect); e.Status.State != v1alpha1.ToolEffectPending {
		t.Errorf("effect: %+v", e.Status)
	}
}

// The worker of one task makes calls of that task alone, while it runs, for the person who asked for it, and people make none.
func TestCallsAreOfTheRun(t *testing.T) {
	t.Parallel()
	w := newCalls(t)
	ann, ben := w.person("user-ann"), w.person("user-ben")
	w.linked(ann, "")
	hers, his := w.running(ann, "hers"), w.running(ben, "his")

	if got := hers.call("find", `{"q":1}`, ""); got.Failure != nil || got.Effect != "" || !strings.Contains(string(got.Result), `"q":1`) {
		t.Errorf("find: %+v %+v", got, got.Failure)
	}
	hers.fails("note", text, "", v1alpha1.ConnectorDenied, "for reading only")
	his.fails("find", "{}", "", v1alpha1.ConnectorConsentRequired, "has not connected")
	const find = "/connector-tools/find"
	his.worker.Post("/internal/v1/tasks/team/hers"+find, "{}").Problem(t, http.StatusForbidden, "")
	ann.Post("/internal/v1/tasks/team/hers"+find, "{}").Problem(t, http.StatusForbidden, "")
	w.Stranger(t).Post("/internal/v1/tasks/team/hers"+find, "{}").Problem(t, http.StatusUnauthorized, "")
	hers.worker.Get("/api/v1/connections").Problem(t, http.StatusForbidden, "")

	// Somebody who may write the status of tasks gives his run her account.
	tasks := w.API().Tasks("team")
	his.task.Status.ConnectionBindings = hers.task.Status.ConnectionBindings
	his.task = kit.Must[*v1alpha1.Task](t)(tasks.UpdateStatus(t.Context(), his.task, metav1.UpdateOptions{}))
	his.fails("find", "{}", "", v1alpha1.ConnectorConsentRequired, "has not connected")

	// Disconnected, and connected anew after the run began.
	w.linked(ben, "")
	his.fails("find", "{}", "", v1alpha1.ConnectorConsentRequired, "connected anew")

	// The end of the task.
	task := kit.Must[*v1alpha1.Task](t)(tasks.Get(t.Context(), "hers", metav1.GetOptions{}))
	if err := tasks.Delete(t.Context(), task.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(task.UID))}); err != nil {
		t.Fatal(err)
	}
	if a := hers.post("find", "{}", ""); a.Code < http.StatusBadRequest {
		t.Errorf("after the end: %d %s", a.Code, a.Body)
	}
	if n := len(w.provider.Calls()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// What a provider answers to a call that writes decides what becomes of its effect.
func TestAnswersOfTools(t *testing.T) {
	t.Parallel()
	w := newCalls(t)
	ann := w.person("user-ann")
	w.linked(ann, "readWrite")
	r := w.running(ann, "writes")
	for i, tc := range []struct {
		status int
		header string
		state  v1alpha1.ToolEffectState
		reason v1alpha1.TaskConnectorFailureReason
	}{
		{http.StatusOK, "", v1alpha1.ToolEffectSucceeded, ""},
		{http.StatusCreated, "", v1alpha1.ToolEffectSucceeded, ""},
		{http.StatusFound, "https://169.254.169.254/latest", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorUnavailable},
		{http.StatusTemporaryRedirect, "https://" + oauthprovider.APIHost + "/elsewhere", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorUnavailable},
		{http.StatusBadRequest, "", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorInvalidArguments},
		{http.StatusForbidden, "", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorDenied},
		{http.StatusNotFound, "", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorNotFound},
		{http.StatusConflict, "", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorRefused},
		{http.StatusTooManyRequests, "", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorRateLimited},
		{http.StatusNotImplemented, "", v1alpha1.ToolEffectFailed, v1alpha1.ConnectorUnavailable},
		{http.StatusInternalServerError, "", v1alpha1.ToolEffectOutcomeUnknown, v1alpha1.ConnectorOutcomeUnknown},
		{http.StatusBadGateway, "", v1alpha1.ToolEffectOutcomeUnknown, v1alpha1.ConnectorOutcomeUnknown},
		{http.StatusRequestTimeout, "", v1alpha1.ToolEffectOutcomeUnknown, v1alpha1.ConnectorOutcomeUnknown},
		{0, "", v1alpha1.ToolEffectOutcomeUnknown, v1alpha1.ConnectorOutcomeUnknown}, // the connection ends
	} {
		w.provider.Answers("/note", func(rw http.ResponseWriter, _ *http.Request) bool {
			if tc.status == 0 {
				panic(http.ErrAbortHandler)
			}
			if tc.header != "" {
				rw.Header().Set("Location", tc.header)
			}
			rw.WriteHeader(tc.status)
			return true
		})
		arguments := fmt.Sprintf(`{"text":"%d"}`, i)
		id, effect := r.approved(arguments)
		before := len(w.provider.Calls())
		got := r.call("note", arguments, id)
		switch {
		case tc.reason == "" && (got.Failure != nil || got.Result == nil), tc.reason != "" && (got.Failure == nil || got.Failure.Reason != tc.reason || got.Failure.Status != int32(tc.status)):
			t.Errorf("%d: %+v %+v, want %s", tc.status, got, got.Failure, tc.reason)
		}
		if e := w.effect(effect); e.Status.State != tc.state {
			t.Errorf("%d: %+v, want %s", tc.status, e.Status, tc.state)
		}
		again := r.post("note", arguments, id)
		if tc.state == v1alpha1.ToolEffectOutcomeUnknown {
			again.Problem(t, http.StatusBadGateway, "not known")
		} else if !host.Decode[outcome](t, again.Want(t, http.StatusOK)).Replayed {
			t.Errorf("%d: not replayed: %s", tc.status, again.Body)
		}
		if n := len(w.provider.Calls()) - before; n != 1 {
			t.Errorf("%d: %d requests", tc.status, n)
		}
	}
	if paths := slices.ContainsFunc(w.provider.Calls(), func(c oauthprovider.Call) bool { return c.Path != "/note" }); paths {
		t.Errorf("calls: %+v", w.provider.Calls())
	}
}

// 64 calls at the end of the access token lead to one refresh, with a provider that revokes all if a refresh token comes twice.
func TestCallsAtExpiry(t *testing.T) {
	t.Parallel()
	w := newCalls(t)
	const life = 5 * time.Minute
	w.provider.Expires(int(life / time.Second))
	ann := w.person("user-ann")
	linked := w.linked(ann, "")
	r := w.running(ann, "reads")
	before := w.provider.Requests("/token")
	w.clock.By.Add(int64(life - 30*time.Second))
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if a := r.post("find", `{"q":1}`, ""); a.Code != http.StatusOK || strings.Contains(a.Body, "reason") {
				t.Errorf("find: %d %s", a.Code, a.Body)
			}
		})
	}
	all.Wait()
	if n := w.provider.Requests("/token") - before; n != 1 {
		t.Errorf("%d refreshes", n)
	}
	if c := w.get(linked.Name); c.Status.LastRefreshTime == nil || c.Status.State != v1alpha1.ConnectionReady || c.Status.GrantSequence != 1 {
		t.Errorf("connection: %+v", c.Status)
	}
	// The person revokes the grant at the provider, and has to connect again.
	w.provider.RevokeAll()
	r.fails("find", "{}", "", v1alpha1.ConnectorConsentRequired, "does not accept the account")
	w.clock.By.Add(int64(life))
	r.fails("find", "{}", "", v1alpha1.ConnectorConsentRequired, "connect")
	if c := w.get(linked.Name); c.Status.State != v1alpha1.ConnectionRevoked {
		t.Errorf("connection: %+v", c.Status)
	}
	n := w.provider.Requests("/token")
	r.fails("find", "{}", "", v1alpha1.ConnectorConsentRequired, "connect")
	if w.provider.Requests("/token") != n {
		t.Error("a revoked grant is refreshed")
	}
	w.leaked(w.provider.Secrets())
}
