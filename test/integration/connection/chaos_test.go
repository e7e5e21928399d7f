// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// The moments at which the server is killed, each around one request.
const (
	neverReserved = iota + 1
	reserving
	reserved
	asking
	asked
	deciding
	decided
	neverCalled
	calling
	requested // the provider has the request
	answered  // the provider has answered
	called
	moments = called
)

// approvals is how many calls are approved, and killedEach how many of them there are for each at which the server is killed.
const approvals, killedEach = 2000, 20

// 2,000 calls are approved, and the server is killed at twelve moments around them. Whoever repeats them then, the provider gets no request
// twice for one approval, and each effect ends as succeeded, failed or unknown, with an answer that stays the same.
func TestEffectsWithAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.Minutes)
	x := newVictim(t)
	ends := map[v1alpha1.ToolEffectState]int{}
	for i := range approvals {
		moment := 0
		if i%killedEach == 0 {
			moment = i/killedEach%moments + 1
		}
		ends[x.once(i, moment)]++
	}
	counts := map[string]int{}
	for _, c := range x.provider.Calls() {
		counts[c.Header.Get("Idempotency-Key")]++
	}
	for id, n := range counts {
		if n != 1 || id == "" {
			t.Errorf("%d requests for approval %s", n, id)
		}
	}
	if ends[v1alpha1.ToolEffectSucceeded]+ends[v1alpha1.ToolEffectOutcomeUnknown] != approvals || ends[v1alpha1.ToolEffectSucceeded] < approvals*9/10 {
		t.Errorf("ends: %v", ends)
	}
	t.Logf("%d approvals reached the provider, ends: %v", len(counts), ends)
}

// victim is a run whose server is killed.
type victim struct {
	*child

	r *run
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	c := newChild(t, envIdle+"=1")
	c.people()
	p := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(oauthprovider.Manifest()), p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Tools[1].HTTP.Timeout = v1alpha1.DurationOf(time.Second) // so that a claim that was interrupted ends soon
	kit.Must[*v1alpha1.ConnectorProvider](t)(c.API().ConnectorProviders("team").Create(t.Context(), p, metav1.CreateOptions{}))
	c.accept()
	ann := c.person("user-ann")
	c.linked(ann, "readWrite")
	return &victim{c, c.running(ann, "writes")}
}

// killed kills the server, and makes the clients of the one that follows.
func (x *victim) killed() {
	t := x.T
	t.Helper()
	x.crash()
	x.r.person = x.person("user-ann")
	token := x.WorkerToken(t, "team", x.r.task.Name, x.r.task.UID)
	x.r.worker = x.Stranger(t).With("Authorization", "Bearer "+token)
}

// send sends a request until it is answered. The server is killed before it reads the request, while it has it, or afterwards, if the moment
// is one of these.
func (x *victim) send(moment, never, during, after int, by func() *standalone.Client, path, body string) host.Answer {
	t := x.T
	t.Helper()
	switch moment {
	case never:
		by().Get("/version").Want(t, http.StatusOK) // so there is a connection of TCP
		x.freeze()
		sent, gone := begin(t.Context(), by(), http.MethodPost, path, body)
		<-sent
		x.killed()
		x.unanswered(gone)
	case during:
		sent, gone := begin(t.Context(), by(), http.MethodPost, path, body)
		<-sent
		x.killed()
		<-gone
	}
	var a host.Answer
	kit.Await(t, "an answer to "+path, func() bool {
		got := try(t.Context(), by(), http.MethodPost, path, body)
		if got.err != nil {
			t.Fatal(got.err)
		}
		a = got.Answer
		return a.Code != http.StatusConflict || path != x.tool() // which is executed still
	})
	if moment == after {
		x.killed()
	}
	return a
}

func (x *victim) tool() string {
	return "/internal/v1/tasks/team/" + x.r.task.Name + "/connector-tools/note"
}

// once has a call reserved, approved and made, and returns how its effect ended.
func (x *victim) once(i, moment int) v1alpha1.ToolEffectState {
	t := x.T
	t.Helper()
	worker := func() *standalone.Client { return x.r.worker }
	person := func() *standalone.Client { return x.r.person }
	arguments := fmt.Sprintf(`{"text":"%d"}`, i)
	effect := host.Decode[outcome](t, x.send(moment, neverReserved, reserving, reserved, worker, x.tool(), `{"arguments":`+arguments+`}`).Want(t, http.StatusOK)).Effect

	c := approval.Call{
		Namespace: "team", Task: x.r.task.Name, TaskUID: x.r.task.UID, Attempt: 1, Request: i + 1, Tool: "note", Description: "Notes.", ID: "c",
		Arguments: []byte(arguments), ArgsDigest: kit.Must[string](t)(approval.Digest([]byte(arguments))), Effect: effect,
	}
	e, id, err := c.Event()
	if err != nil {
		t.Fatal(err)
	}
	e.TypeMeta = metav1.TypeMeta{APIVersion: "core.platform.ai/v1alpha1", Kind: "ExecutionEvent"}
	event, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	x.send(moment, 0, asking, asked, worker, "/apis/core.platform.ai/v1alpha1/namespaces/team/tasks/"+x.r.task.Name+"/events", string(event))
	x.send(moment, 0, deciding, decided, person, "/api/v1/tasks/"+x.r.task.Name+"/approvals/"+id+"/decision", `{"decision":"approve"}`)

	call := fmt.Sprintf(`{"arguments":%s,"approvalId":%q}`, arguments, id)
	if moment == requested || moment == answered {
		x.interrupted(moment, call)
	}
	first := x.send(moment, neverCalled, calling, called, worker, x.tool(), call)
	again := x.send(0, -1, -1, -1, worker, x.tool(), call)
	state := x.effect(effect).Status.State
	switch {
	case state == v1alpha1.ToolEffectOutcomeUnknown && first.Code == http.StatusBadGateway && again.Code == http.StatusBadGateway:
	case state == v1alpha1.ToolEffectSucceeded && first.Code == http.StatusOK && again.Code == http.StatusOK:
		a, b := host.Decode[outcome](t, first), host.Decode[outcome](t, again)
		if string(a.Result) != string(b.Result) || !b.Replayed || len(b.Result) == 0 {
			t.Errorf("call %d, killed at %d: %s, and then %s", i, moment, first.Body, again.Body)
		}
	default:
		t.Errorf("call %d, killed at %d: %s; %d %s, and then %d %s", i, moment, state, first.Code, first.Body, again.Code, again.Body)
	}
	return state
}

// interrupted makes a call whose server is killed when the provider has its request, or has answered it.
func (x *victim) interrupted(moment int, call string) {
	t := x.T
	t.Helper()
	at, wait, leave := stop(t)
	x.provider.Answers("/note", func(w http.ResponseWriter, _ *http.Request) bool {
		if moment == answered {
			w.Header().Set("Content-Length", "2")
			_, _ = w.Write([]byte("{}"))
			_ = http.NewResponseController(w).Flush()
		}
		wait()
		return true
	})
	_, gone := begin(t.Context(), x.r.worker, http.MethodPost, x.tool(), call)
	<-at
	x.killed()
	<-gone
	leave()
	x.provider.Answers("/note", nil)
}
