// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/host/pki"
	"github.com/platform-ai/platform/pkg/server/host/token"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/test/kit/host"
)

// apply creates an object that is given as YAML, in namespace team.
func (w *world) apply(resource, name, text string, into any) {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte("apiVersion: core.platform.ai/v1alpha1\nmetadata: {name: " + name + "}\n" + text))
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := w.api.RESTClient().Post().Namespace("team").Resource(resource).Body(data).Do(context.Background()).Raw()
	if err == nil && into != nil {
		err = yaml.Unmarshal(raw, into)
	}
	if err != nil {
		w.t.Fatalf("%s %s: %v", resource, name, err)
	}
}

// uses is what a task of the world refers to; NAME is the task.
var uses = map[string]string{
	"sessions":  "kind: Session\nspec: {sessionType: task}",
	"providers": "kind: Provider\nspec: {type: openai, secretRef: {name: none}}",
	"tools":     "kind: Tool\nspec: {description: d, http: {url: \"https://example.com/\"}}",
	"skills":    "kind: Skill\nspec: {description: d, content: {inline: text}}",
	// Its tasks recall what is for them alone; by default they recall what is in the namespace.
	"agents": "kind: Agent\nspec: {providerRef: {name: NAME}, tools: [{name: NAME}], memory: {recall: Session}, coordination: {enabled: true, maxDepth: 3, allowedAgents: [{name: \"*\"}]}}",
}

// task creates a task that runs, with everything it uses. A worker of the parent creates it, if one is given.
func (w *world) task(name string, parent *v1alpha1.Task) *v1alpha1.Task {
	w.t.Helper()
	for _, resource := range []string{"sessions", "providers", "tools", "skills", "agents"} {
		w.apply(resource, name, strings.ReplaceAll(uses[resource], "NAME", name), nil)
	}
	t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "of " + name, AgentRef: &v1alpha1.NamespacedReference{Name: name},
	}}
	creator := w.editor // who may not apply what the task proposes
	if parent != nil {
		t.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		creator = w.as(w.worker(parent))
	}
	ctx := context.Background()
	must(creator.Tasks("team").Create(ctx, t, metav1.CreateOptions{}))(w.t)
	// A worker can give its child neither a session nor skills.
	patch := `{"spec": {"sessionRef": {"name": "` + name + `"}, "ai": {"skills": [{"name": "` + name + `"}]}}}`
	must(w.api.Tasks("team").Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))(w.t)
	return w.publish(name, v1alpha1.TaskRunning)
}

// as returns a client with a token.
func (w *world) as(token string) typed.CoreV1alpha1Interface {
	w.t.Helper()
	return host.CoreOf(w.t, w.With(token))
}

// others creates what else the questions are about: what the worker of the task made, and objects of the host.
func (w *world) others(mine *v1alpha1.Task) {
	w.t.Helper()
	ctx, me := context.Background(), w.as(w.worker(mine))
	event := must(me.Tasks("team").AppendEvent(ctx, "mine", &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage}, metav1.CreateOptions{}))(w.t)
	w.names["executionevents"] = event.Name
	spec := v1alpha1.ApprovalSpec{TaskName: "mine", TaskUID: mine.UID, TargetTool: "exec", TargetArgsDigest: strings.Repeat("0", 64)}
	must(me.Tasks("team").AppendEvent(ctx, "mine", approval.RequestEvent("team", spec), metav1.CreateOptions{}))(w.t)
	w.names["approvals"] = approval.ID("team", "mine", mine.UID, "exec", spec.TargetArgsDigest, "")
	proposal := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1alpha1.MemoryProposalSpec{Title: "t", Content: "c"}}
	w.names["memoryproposals"] = must(me.MemoryProposals("team").Create(ctx, proposal, metav1.CreateOptions{}))(w.t).Name
	w.apply("memories", "mine", "kind: Memory\nspec: {content: c, sessionName: mine}", nil)
	w.apply("budgets", "mine", "kind: Budget\nspec: {limit: {tokens: 1000000000}, window: day}", nil)
	w.apply("sessions", "talk", "kind: Session\nspec: {sessionType: chat}", nil)
	w.apply("agentruntimes", "mine", "kind: AgentRuntime\nspec: {contractVersion: platform.harness.v1, "+
		"deployment: {mode: external-endpoint, endpoint: \"https://h/\"}, clientAuth: {bearerTokenSecretRef: {name: s, key: k}}}", nil)
	sum := "sha256:" + strings.Repeat("0", 64)
	w.apply("runtimepools", "mine", "kind: RuntimePool\nspec: {trustDomain: {namespace: team, identity: i}, runtimeNamespace: team, "+
		"runtime: {image: \"i@"+sum+"\", profile: {protocolVersion: \"1\", digest: \""+sum+"\"}}}", nil)
	w.apply("gatewayidentities", "mine", "kind: GatewayIdentity\nspec: {gatewayRef: {name: mine}, accountId: a, senderId: s, username: u}", nil)
	w.linked()
	w.examples()
	w.names["catalogtools"], w.names["namespaces"], w.names["chats"] = "web_fetch", "team", "default"
	k, meta := w.Kubernetes(w.t), metav1.ObjectMeta{Name: "mine"}
	must(k.CoreV1().Secrets("team").Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{}))(w.t)
	must(k.CoreV1().ConfigMaps("team").Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{}))(w.t)
	must(k.CoreV1().ServiceAccounts("team").Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}))(w.t)
}

// linked creates the connection of a person, which waits for a consent.
func (w *world) linked() {
	w.t.Helper()
	ctx := context.Background()
	_, data := example(w.t, "connectorproviders")
	must(w.api.RESTClient().Post().Namespace("team").Resource("connectorproviders").Body(data).Do(ctx).Raw())(w.t)
	ready := `{"status":{"conditions":[` + condition(v1alpha1.ConditionAccepted) + "," + condition(v1alpha1.ConditionResolvedRefs) + `]}}`
	must(w.api.ConnectorProviders("team").Patch(ctx, "mine", types.MergePatchType, []byte(ready), metav1.PatchOptions{}, "status"))(w.t)
	ask := &v1alpha1.ConnectionAuthorization{Spec: v1alpha1.ConnectionAuthorizationSpec{ProviderRef: &v1alpha1.LocalReference{Name: "mine"}}}
	begun := must(w.as(w.issuer.token("user-1")).ConnectionAuthorizations("team").Create(ctx, ask, metav1.CreateOptions{}))(w.t)
	w.names["connections"] = begun.Name
}

// condition is a condition that is True.
func condition(kind string) string {
	return `{"type":"` + kind + `","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
}

// examples creates an object of each stored kind of which there is none yet, as its example describes it.
func (w *world) examples() {
	w.t.Helper()
	for _, r := range core.Definitions() {
		plural := r.GroupVersionResource().Resource
		if _, named := w.names[plural]; named || !r.KindGrant().Status {
			continue
		}
		namespaced := !r.KindGrant().ClusterScoped
		err := w.api.RESTClient().Get().NamespaceIfScoped("team", namespaced).Resource(plural).Name("mine").Do(context.Background()).Error()
		if !apierrors.IsNotFound(err) {
			must(0, err)(w.t)
			continue
		}
		kind, data := example(w.t, plural)
		must(w.api.RESTClient().Post().NamespaceIfScoped("team", namespaced).Resource(plural).Body(data).Do(context.Background()).Raw())(w.t)
		restBodies[kind] = string(data)
	}
}

// records are objects of kinds that no user writes, so that there are no examples of them.
var records = map[string]string{
	"codehostdeliveries": `{apiVersion: core.platform.ai/v1alpha1, kind: CodeHostDelivery, metadata: {name: a}, spec: {deliveryID: a, bodySHA256: a, event: push, receivedAt: "2026-01-01T00:00:00.000000Z"}}`,
	"monitorruns":        `{apiVersion: core.platform.ai/v1alpha1, kind: MonitorRun, metadata: {name: a}, spec: {monitorName: a, monitorUID: a, trigger: request}}`,
	"monitoritems":       `{apiVersion: core.platform.ai/v1alpha1, kind: MonitorItem, metadata: {name: a}, spec: {monitorName: a, monitorUID: a, targetKind: issue, number: 1}}`,
	"monitorcommands":    `{apiVersion: core.platform.ai/v1alpha1, kind: MonitorCommand, metadata: {name: a}, spec: {monitorName: a, monitorUID: a, targetKind: issue, number: 1, intent: plan, source: api}}`,
	"monitorworkactions": `{apiVersion: core.platform.ai/v1alpha1, kind: MonitorWorkAction, metadata: {name: a}, spec: {monitorName: a, monitorUID: a, targetKind: issue, number: 1, desiredAction: plan, attempt: 1}}`,
	"gatewayevents": `{apiVersion: core.platform.ai/v1alpha1, kind: GatewayEvent, metadata: {name: a}, spec: {gatewayName: a, gatewayUid: a, externalEventId: a, payloadSHA256: a, ` +
		`protocolVersion: platform.gateway.v1, eventType: text, accountId: a, contextId: a, senderId: a, text: a, createdAt: "2026-01-01T00:00:00.000000Z"}}`,
	"gatewaydeliveries": `{apiVersion: core.platform.ai/v1alpha1, kind: GatewayDelivery, metadata: {name: a}, spec: {gatewayName: a, gatewayUid: a, idempotencyId: a, eventId: a, sessionName: a, ` +
		`kind: final, accountId: a, contextId: a, text: a, createdAt: "2026-01-01T00:00:00.000000Z"}}`,
	"tooleffects": `{apiVersion: core.platform.ai/v1alpha1, kind: ToolEffect, metadata: {name: a}, spec: {taskName: none, taskUID: a, tool: a, connectorProvider: a, connection: {name: a, uid: a, ` +
		`generation: 1, grantSequence: 1}, toolDigest: a, policyDigest: a, requestDigest: a, timeoutSeconds: 30, createdAt: "2026-01-01T00:00:00.000000Z"}}`,
	"monitormutations": `{apiVersion: core.platform.ai/v1alpha1, kind: MonitorMutation, metadata: {name: a}, spec: {monitorName: a, monitorUID: a, targetKind: issue, number: 1, operation: merge}}`,
}

// example returns the example of a kind as JSON, with the name mine.
func example(t testing.TB, plural string) (kind string, data []byte) {
	t.Helper()
	for _, o := range v1alpha1.KnownTypes() {
		kind = reflect.TypeOf(o).Elem().Name()
		if v1alpha1.Plural(kind) == plural {
			break
		}
	}
	first, ok := records[plural]
	if !ok {
		text := must(os.ReadFile("../../artifacts/examples/" + strings.ToLower(kind) + ".yaml"))(t)
		first, _, _ = strings.Cut(string(text), "\n---\n")
	}
	var o unstructured.Unstructured
	must(0, yaml.Unmarshal([]byte(first), &o.Object))(t)
	o.SetName("mine")
	return kind, must(o.MarshalJSON())(t)
}

// publish gives a task a new run, or ends it.
func (w *world) publish(name string, phase v1alpha1.TaskPhase) *v1alpha1.Task {
	w.t.Helper()
	patch := `{"status": {"phase": "` + string(phase) + `", "jobUID": "run-` + w.t.Name() + time.Now().Format("150405.000000000") + `"}}`
	return must(w.api.Tasks("team").Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"))(w.t)
}

// worker returns a token of the present run of a task.
func (w *world) worker(t *v1alpha1.Task) string {
	w.t.Helper()
	return w.account("team", v1alpha1.ServiceAccountAIWorker, v1alpha1.ClusterRoleWorker, &authenticationv1.BoundObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Name: t.Name, UID: t.UID,
	})
}

// account returns a token of a ServiceAccount, which gets a role in its namespace.
func (w *world) account(namespace, name, role string, of *authenticationv1.BoundObjectReference) string {
	w.t.Helper()
	w.ServiceAccount(w.t, namespace, name, role)
	return w.TokenOf(w.t, namespace, name, authenticationv1.TokenRequestSpec{BoundObjectRef: of})
}

// refused returns a token of a ServiceAccount like account does, which is bound to a task if one is given, and either has expired or
// is for another server. The API issues none that has expired, so that one is signed with the key of the server.
func (w *world) refused(namespace, name, role, why string, task *v1alpha1.Task) string {
	w.t.Helper()
	w.account(namespace, name, role, nil)
	if why == "other audience" {
		spec := authenticationv1.TokenRequestSpec{Audiences: []string{"other"}}
		if task != nil {
			spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Name: task.Name, UID: task.UID}
		}
		return w.TokenOf(w.t, namespace, name, spec)
	}
	keys := must(pki.Open(pki.Options{Dir: filepath.Join(w.DataDir, "pki")}))(w.t)
	account := must(w.Kubernetes(w.t).CoreV1().ServiceAccounts(namespace).Get(w.t.Context(), name, metav1.GetOptions{}))(w.t)
	signer := must(token.NewSigner(token.SignerOptions{Key: keys.ServiceAccountKey(), Clock: testclock.NewFakePassiveClock(time.Now().Add(-time.Hour))}))(w.t)
	claims := token.Claims{Namespace: namespace, ServiceAccount: token.Ref{Name: name, UID: account.UID}, Life: 2 * time.Hour}
	if task != nil {
		claims.Task, claims.Run = &token.Ref{Name: task.Name, UID: task.UID}, string(task.Status.JobUID)
	}
	// But for its end, such a token is accepted.
	if code, answer := w.send(http.MethodGet, "/api/v1/auth/whoami", "", "Authorization", "Bearer "+must(signer.Sign(claims))(w.t).Token); code != http.StatusOK {
		w.t.Fatalf("a token like that which has expired: %d %s", code, answer)
	}
	claims.Life = time.Hour - time.Minute
	return must(signer.Sign(claims))(w.t).Token
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
