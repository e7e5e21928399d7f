// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/tokenexchange"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
	"github.com/platform-ai/platform/test/tokenservice"
)

// transactedScript: a chief delegates to a lead, who delegates to a clerk, who delegates a command. What failed is told.
const transactedScript = `
models: [scripted-1]
turns:
- name: the chief
  match: {turn: 1, lastRole: user, contains: Begin}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: lead, prompt: Go on.}}]}
- name: the lead
  match: {turn: 1, lastRole: user, contains: Go on.}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: Finish.}}]}
- name: the clerk
  match: {turn: 1, lastRole: user, contains: Finish.}
  reply: {toolCalls: [{name: create_container_task, arguments: {command: [env]}}]}
- name: refused
  match: {turn: 2, lastRole: tool, contains: '"success":false'}
  reply: {text: "{{ .Results.delegate_task.errorType }}: {{ .Results.delegate_task.error }}"}
- name: wait
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: wait for the command
  match: {turn: 2, lastRole: tool, contains: '"phase":"Pending"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.create_container_task.data.name }}"]}}]}
- name: done
  match: {turn: 3, lastRole: tool, contains: '"completed":true'}
  reply: {text: It is done.}
`

// transacted is a server that accepts transaction tokens and exchanges them.
type transacted struct {
	*standalone.Platform
	tts *tokenservice.Service
}

// newTransacted starts a server with the agents of the script. Whoever has a transaction token may create tasks.
func newTransacted(t *testing.T, configure ...func(*standalone.Options)) *transacted {
	t.Helper()
	tts := tokenservice.New(t)
	identity := func(o *standalone.Options) {
		o.AllowHostCommands, o.KeepRuns = true, true
		o.Identity.ContextToken = external.ContextToken{
			Profile: external.ProfileTransactionToken, Issuer: tts.URL, Audience: "platform", JWKSURL: tts.URL + "/keys",
			Exchange: tokenexchange.Options{Endpoint: tts.URL + "/token", ChildScope: "work", Timeout: time.Minute}, // the most that can be set
		}
	}
	p, _ := standalone.WithModel(t, transactedScript, append([]func(*standalone.Options){identity}, configure...)...)
	x := &transacted{p, tts}
	for name, may := range map[string]string{"chief": "lead", "lead": "clerk", "clerk": "clerk"} {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			ProviderRef:  &v1alpha1.NamespacedReference{Name: "model"},
			Coordination: &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: may}}},
		}}
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), a, metav1.CreateOptions{}))
	}
	kit.Must[*rbacv1.RoleBinding](t)(p.Kubernetes(t).RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "transactions"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-editor"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: external.GroupContextToken}},
	}, metav1.CreateOptions{}))
	kit.Await(t, "the binding in force", func() bool {
		code, _ := x.send(http.MethodGet, "/api/v1/tasks", "", x.token("probe", "work"))
		return code == http.StatusOK
	})
	return x
}

// token returns the transaction token of a caller.
func (x *transacted) token(txn, scope string) string {
	x.T.Helper()
	return kit.Must[string](x.T)(x.tts.Sign("txntoken+jwt", tokenservice.Claims{"sub": "ann", "txn": txn, "scope": scope, "req_wl": "gateway"}))
}

// send makes a REST request with a transaction token.
func (x *transacted) send(method, path, body, token string) (int, string) {
	x.T.Helper()
	r := kit.Must[*http.Request](x.T)(http.NewRequestWithContext(x.T.Context(), method, x.RESTURL+path, strings.NewReader(body)))
	r.Header.Set("Txn-Token", token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		x.T.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode, string(kit.Must[[]byte](x.T)(io.ReadAll(answer.Body)))
}

// begin creates a task of the chief in a transaction that has its name.
func (x *transacted) begin(name string) (incoming, answer string) {
	x.T.Helper()
	incoming = x.token(name, "work more")
	code, answer := x.send(http.MethodPost, "/api/v1/tasks", fmt.Sprintf(`{"name":%q,"type":"ai","prompt":"Begin.","agentRef":{"name":"chief"}}`, name), incoming)
	if code != http.StatusCreated {
		x.T.Fatalf("%s: %d %s", name, code, answer)
	}
	return incoming, answer
}

// secretOf returns the Secret with the token of a task.
func (x *transacted) secretOf(task *v1alpha1.Task) *corev1.Secret {
	x.T.Helper()
	name := task.Annotations[v1alpha1.AnnotationTransactionTokenSecret]
	return kit.Must[*corev1.Secret](x.T)(x.Kubernetes(x.T).CoreV1().Secrets("default").Get(x.T.Context(), name, metav1.GetOptions{}))
}

// TestTransactionTokensOfChildren: in a coordination of four levels each task has a transaction token of its own, which was
// exchanged from that of its parent and is only in a Secret that the task owns: in no file of the data folder, no answer, no
// event, no log, not in the audit log and not in the environment of a command.
func TestTransactionTokensOfChildren(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit")
	policy := filepath.Join(t.TempDir(), "policy")
	rules := `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "resources": [{"resources": ["secrets"]}]}, {"level": "RequestResponse"}]}`
	if err := os.WriteFile(policy, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	x := newTransacted(t, func(o *standalone.Options) { o.AuditLog, o.AuditPolicy, o.Metrics = audit, policy, metrics })
	incoming, answer := x.begin("boss")
	said := []string{answer}
	root := x.AwaitPhase("boss", v1alpha1.TaskSucceeded)
	if got := x.ResultOf("boss"); got != "It is done." {
		t.Errorf("the result is %q", got)
	}
	tree := append([]v1alpha1.Task{*root}, x.Below("boss")...)
	if len(tree) != 4 || tree[3].Spec.Type != v1alpha1.TaskTypeContainer {
		t.Fatalf("%d tasks", len(tree))
	}
	tokens := []string{incoming}
	above := kit.Must[tokenservice.Claims](t)(x.tts.Read(incoming))
	for i := range tree {
		task := &tree[i]
		if task.Annotations[v1alpha1.AnnotationTransactionTokenPending]+task.Annotations[v1alpha1.AnnotationTransactionTokenPendingSince] != "" ||
			task.Spec.Transaction == nil || task.Spec.Transaction.ID != "boss" || task.Labels[v1alpha1.LabelTransactionID] != "boss" || task.Annotations[v1alpha1.AnnotationTransactionScope] != "work more" {
			t.Errorf("%s: %+v %v %v", task.Name, task.Spec.Transaction, task.Labels, task.Annotations)
		}
		s := x.secretOf(task)
		if s.Type != v1alpha1.SecretTypeTransactionToken || !metav1.IsControlledBy(s, task) || len(s.Data) != 1 {
			t.Errorf("%s: %s %v, %d keys", s.Name, s.Type, s.OwnerReferences, len(s.Data))
		}
		token := string(s.Data[v1alpha1.TransactionTokenKey])
		claims := kit.Must[tokenservice.Claims](t)(x.tts.Read(token))
		if claims["parent"] != above["jti"] || claims["scope"] != "work" || claims["txn"] != "boss" {
			t.Errorf("%s: %v was exchanged from %v, want %v", task.Name, claims, claims["parent"], above["jti"])
		}
		tokens, above = append(tokens, token), claims
		said = append(said, x.said(task.Name)...)
	}
	if env := x.ResultOf(tree[3].Name); !strings.Contains(env, "PLATFORM_TRANSACTION_ID=boss\n") || strings.Contains(env, "PLATFORM_CONTEXT_TOKEN") {
		t.Errorf("the command has the environment %s", env)
	}
	if n := len(x.tts.Exchanges()); n != 4 {
		t.Errorf("%d exchanges", n)
	}
	const exchanges = `
		# HELP platform_context_token_tts_exchange_total Exchanges of transaction tokens for the tasks of callers, by result (success or failure) and by the reason of the failure.
		# TYPE platform_context_token_tts_exchange_total counter
		platform_context_token_tts_exchange_total{reason="",result="success"} 1
	`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(exchanges), "platform_context_token_tts_exchange_total"); err != nil {
		t.Error(err)
	}
	secrets := make([]string, len(tree))
	for i := range tree {
		secrets[i] = x.secretOf(&tree[i]).Name
	}
	if err := x.Tasks().Delete(t.Context(), "boss", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range secrets {
		kit.Await(t, "the end of the Secret of a token", func() bool {
			_, err := x.Kubernetes(t).CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	x.Stop(t)
	for i, text := range said {
		for _, token := range tokens {
			if holds([]byte(text), token) {
				t.Errorf("answer %d contains a token: %.300s", i, text)
			}
		}
	}
	x.search(tokens, audit)
}

// said returns what the API says about a task.
func (x *transacted) said(task string) []string {
	x.T.Helper()
	const native = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	var all []string
	for _, path := range []string{
		native + "tasks/" + task, native + "tasks/" + task + "/log", native + "tasks/" + task + "/result", native + "tasks/" + task + "/trace",
		native + "executionevents?fieldSelector=taskName%3D" + task, "/api/v1/namespaces/default/events",
	} {
		all = append(all, x.get(path))
	}
	return all
}

// get reads a path as the administrator.
func (x *transacted) get(path string) string {
	x.T.Helper()
	raw, err := x.Kubernetes(x.T).CoreV1().RESTClient().Get().RequestURI(path).DoRaw(x.T.Context())
	if err != nil && !apierrors.IsNotFound(err) {
		x.T.Fatalf("%s: %v", path, err)
	}
	return string(raw)
}

// holds reports whether a text contains a token, or its signature.
func holds(text []byte, token string) bool {
	signature := token[strings.LastIndexByte(token, '.')+1:]
	return bytes.Contains(text, []byte(signature[:40])) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(token))[:120]))
}

// search looks for tokens in the data folder and in further files.
func (x *transacted) search(tokens []string, more ...string) {
	x.T.Helper()
	seen := false
	look := func(path string) error {
		b, err := os.ReadFile(path)
		seen = seen || bytes.Contains(b, []byte(v1alpha1.LabelPrefix+"transaction-"))
		for _, token := range tokens {
			if holds(b, token) {
				x.T.Errorf("%s contains a token", path)
			}
		}
		return err
	}
	err := filepath.WalkDir(x.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return look(path)
	})
	for _, path := range more {
		err = cmp.Or(err, look(path))
	}
	if err != nil || !seen {
		x.T.Errorf("the search finds not even the names of the Secrets: %v", err)
	}
}

// TestTransactionTokensAreRefused: a token service that is away or lies gives a model a clear error, and there is no child. No
// part of a token is in what is said.
func TestTransactionTokensAreRefused(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newTransacted(t)
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(thief.Close)
	var huge atomic.Int64
	change := func(name string, value any) tokenservice.Lie {
		return func(_ http.ResponseWriter, _ *http.Request, c tokenservice.Claims) bool {
			c[name] = value
			return false
		}
	}
	write := func(code int, format string, args ...any) tokenservice.Lie {
		return func(w http.ResponseWriter, _ *http.Request, _ tokenservice.Claims) bool {
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, format, args...)
			return true
		}
	}
	cases := map[string]struct {
		lie  tokenservice.Lie
		want string
	}{
		"broad":   {change("scope", "work more"), "unavailable: nothing was delegated: the token that the token service issued has a scope that was not asked for"},
		"scope":   {change("scope", ""), "unavailable: nothing was delegated: the token that the token service issued has no scope"},
		"expired": {change("exp", 1000), "unavailable: nothing was delegated: the token that the token service issued has expired"},
		"other":   {change("txn", "boss"), "unavailable: nothing was delegated: the token that the token service issued is for another transaction"},
		"who":     {change("sub", "bob"), "unavailable: nothing was delegated: the token that the token service issued is for another subject"},
		"issuer":  {change("iss", "https://example.com"), "unavailable: nothing was delegated: the token that the token service issued is of another issuer"},
		"error":   {write(http.StatusInternalServerError, "{}"), "unavailable: nothing was delegated: the token service failed (500)"},
		"text":    {write(http.StatusOK, "hello"), "unavailable: nothing was delegated: the token service answered without a token"},
		"access":  {write(http.StatusOK, `{"access_token":"x","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`), "unavailable: nothing was delegated: the token service did not issue a transaction token"},
		"typ":     {x.signed("at+jwt", x.tts.Sign), "unavailable: nothing was delegated: the token that the token service issued is not of type txntoken+jwt"},
		"forged":  {x.signed("txntoken+jwt", x.tts.Forge), "permission_denied: the transaction token for the task is not accepted"},
		"redirect": {func(w http.ResponseWriter, r *http.Request, _ tokenservice.Claims) bool {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			return true
		}, "unavailable: nothing was delegated: the token service answered with a redirection (307)"},
		"echo": {func(w http.ResponseWriter, r *http.Request, _ tokenservice.Claims) bool {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":"invalid_scope","error_description":%q}`, r.PostForm.Get("subject_token"))
			return true
		}, "permission_denied: nothing was delegated: the token service refused (400, invalid_scope)"},
		"down": {func(http.ResponseWriter, *http.Request, tokenservice.Claims) bool { panic(http.ErrAbortHandler) }, "unavailable: nothing was delegated: the token service cannot be reached"},
		"huge": {func(w http.ResponseWriter, _ *http.Request, _ tokenservice.Claims) bool {
			for chunk := bytes.Repeat([]byte(" "), 1<<20); huge.Load() < 10<<30; {
				n, err := w.Write(chunk)
				huge.Add(int64(n))
				if err != nil {
					break
				}
			}
			return true
		}, "unavailable: nothing was delegated: the token service answered with more than 64 KiB"},
	}
	x.tts.Lying(func(w http.ResponseWriter, r *http.Request, c tokenservice.Claims) bool {
		name, _ := c["txn"].(string)
		if cases[name].lie == nil || !x.issued(c["parent"]) { // the first exchange of each is honest
			return false
		}
		return cases[name].lie(w, r, c)
	})
	var tokens []string
	names := make([]string, 0, len(cases))
	for name := range cases {
		incoming, _ := x.begin(name)
		names, tokens = append(names, name), append(tokens, incoming)
	}
	for _, name := range names {
		root := x.AwaitPhase(name, v1alpha1.TaskSucceeded)
		tokens = append(tokens, string(x.secretOf(root).Data[v1alpha1.TransactionTokenKey]))
		if got := x.ResultOf(name); !strings.HasPrefix(got, cases[name].want) {
			t.Errorf("%s: %s, want %s", name, got, cases[name].want)
		}
		children := x.Below(name)
		if name == "forged" { // its child never started
			if len(children) != 1 || children[0].Status.Phase != v1alpha1.TaskCancelled || children[0].Status.Attempts != 0 {
				t.Errorf("%s: %+v", name, children)
			}
		} else if len(children) != 0 {
			t.Errorf("%s: %d children", name, len(children))
		}
		for _, text := range x.said(name) {
			for _, token := range tokens {
				if holds([]byte(text), token) {
					t.Errorf("%s: an answer contains a token: %.300s", name, text)
				}
			}
		}
	}
	if stolen.Load() > 0 || huge.Load() > 64<<20 {
		t.Errorf("%d redirections were followed, %d bytes were read", stolen.Load(), huge.Load())
	}
	x.Stop(t)
	x.search(tokens)
}

// issued reports whether the service issued the token with this jti.
func (x *transacted) issued(jti any) bool {
	return slices.ContainsFunc(x.tts.Exchanges(), func(e tokenservice.Exchange) bool { return e.Issued == jti })
}

// signed answers with a token of a type, signed by sign.
func (x *transacted) signed(typ string, sign func(string, tokenservice.Claims) (string, error)) tokenservice.Lie {
	return func(w http.ResponseWriter, _ *http.Request, c tokenservice.Claims) bool {
		token, err := sign(typ, c)
		if err == nil {
			err = tokenservice.Answer(w, token)
		}
		return err == nil
	}
}

// TestTransactionTokenOfACaller: the task of a caller whose transaction lacks the scope of tasks, or whose token cannot be
// exchanged, is not created. Clients can neither ask for a token nor say that there is one.
func TestTransactionTokenOfACaller(t *testing.T) {
	t.Parallel()
	x := newTransacted(t)
	const body = `{"name":"boss","type":"container","command":["true"]}`
	if code, answer := x.send(http.MethodPost, "/api/v1/tasks", body, x.token("t", "more")); code != http.StatusForbidden || !strings.Contains(answer, "the transaction has no scope work") {
		t.Errorf("without the scope: %d %s", code, answer)
	}
	x.tts.Lying(func(w http.ResponseWriter, _ *http.Request, _ tokenservice.Claims) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	token := x.token("t", "work")
	if code, answer := x.send(http.MethodPost, "/api/v1/tasks", body, token); code != http.StatusServiceUnavailable || !strings.Contains(answer, "the token service failed (500)") || holds([]byte(answer), token) {
		t.Errorf("without the service: %d %s", code, answer)
	}
	x.tts.Lying(nil)
	if list := kit.Must[*v1alpha1.TaskList](t)(x.Tasks().List(t.Context(), metav1.ListOptions{})); len(list.Items) != 0 {
		t.Errorf("%d tasks", len(list.Items))
	}
	for _, key := range []string{v1alpha1.AnnotationTransactionTokenPending, v1alpha1.AnnotationTransactionTokenPendingSince, v1alpha1.AnnotationTransactionTokenSecret} {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "boss", Annotations: map[string]string{key: "true"}}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
		if _, err := x.Tasks().Create(t.Context(), task, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if code, answer := x.send(http.MethodPost, "/api/v1/tasks", body, token); code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	x.AwaitPhase("boss", v1alpha1.TaskSucceeded)
	for _, patch := range []string{`{"platform.ai/transaction-token-pending":"true"}`, `{"platform.ai/transaction-token-secret":"key"}`} {
		_, err := x.Tasks().Patch(t.Context(), "boss", types.MergePatchType, []byte(`{"metadata":{"annotations":`+patch+`}}`), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", patch, err)
		}
	}
}

// TestTransactionTokenThatNeverComes: a task whose token could not be stored waits, also after a restart of the server, and
// fails after two minutes without having started. The Event says why.
func TestTransactionTokenThatNeverComes(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	now := &quickclock.Ahead{}
	x := newTransacted(t, func(o *standalone.Options) { o.Clock = now })
	refusing := host.Policy("no-tokens", "object.type != 'platform.ai/transaction-token'", "no")
	rule := &refusing.Spec.MatchConstraints.ResourceRules[0].Rule
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{""}, []string{"v1"}, []string{"secrets"}
	host.Install(t, x.Kubernetes(t), refusing, host.Deny("no-tokens"))
	kit.Await(t, "the policy in force", func() bool {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Type: v1alpha1.SecretTypeTransactionToken}
		_, err := x.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	incoming, _ := x.begin("boss")
	waits := func(task *v1alpha1.Task) bool {
		return slices.ContainsFunc(task.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionWaitingToStart && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonTransactionTokenPending
		})
	}
	x.AwaitTask("boss", waits)
	x.Restart(t)
	if task := x.AwaitTask("boss", waits); task.Annotations[v1alpha1.AnnotationTransactionTokenPending] != "true" {
		t.Errorf("%v", task.Annotations)
	}
	now.By.Store(int64(3 * time.Minute))
	kit.Must[*v1alpha1.Task](t)(x.Tasks().Patch(t.Context(), "boss", types.MergePatchType, []byte(`{"metadata":{"labels":{"look":"again"}}}`), metav1.PatchOptions{}))
	failed := x.AwaitPhase("boss", v1alpha1.TaskFailed)
	if failed.Status.Attempts != 0 || !strings.Contains(failed.Status.Message, "did not get its transaction token within 2m0s") {
		t.Errorf("%+v", failed.Status)
	}
	kit.Await(t, "an Event of the missing token", func() bool {
		list, err := x.Kubernetes(t).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Reason == v1alpha1.ReasonTransactionTokenPendingTimeout && e.InvolvedObject.Name == "boss"
		})
	})
	x.Stop(t)
	x.search([]string{incoming, x.tts.Exchanges()[0].Token})
}
