// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// memoryAnswer is a memory or a proposal as REST clients see it.
type memoryAnswer struct {
	ID, Namespace, Content, Source, SourceProposalID, Status, AppliedMemoryID, Reviewer, AppliedBy string
	Tags                                                                                           []string
	Disabled, Deleted                                                                              bool
	RecalledCount                                                                                  int
	Origin                                                                                         *struct{ TaskName string }
}

type memoryPage struct{ Items []memoryAnswer }

// All documented paths of memories and proposals, by people and by a worker.
func TestRESTMemory(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	editor, approver, viewer := s.REST(t, "default", "ed", "edit"), s.REST(t, "default", "ap", "admin"), s.REST(t, "default", "vi", "view")
	const memories, proposals = "/api/v1/memories", "/api/v1/memory-proposals"
	made := host.Decode[memoryAnswer](t, editor.Post(memories, `{"content":"deploy on Tuesdays, token=ghp_0123456789abcdefghijABCDEFGHIJ012345","tags":["ops"],"source":"handbook","agentName":"ann"}`).Want(t, 201))
	if !strings.HasPrefix(made.ID, "mem-") || strings.Contains(made.Content, "ghp_") || made.Namespace != "default" {
		t.Errorf("made: %+v", made)
	}
	one := memories + "/" + made.ID
	editor.Post(memories, `{"tags":["x"]}`).Problem(t, 400, "content: is required")
	editor.Post(memories, `{"content":"x","colour":"red"}`).Problem(t, 400, "colour")
	viewer.Post(memories, `{"content":"x"}`).Problem(t, 403)
	viewer.Get(one).Want(t, 200, `"recalledCount":0`)
	found := func(query string) (ids []string) {
		t.Helper()
		for _, m := range host.Decode[memoryPage](t, viewer.Get(memories+"?"+query).Want(t, 200, `"metadata":{}`)).Items {
			ids = append(ids, m.ID)
		}
		return ids
	}
	for query, want := range map[string]int{
		"": 1, "q=tuesday": 1, "query=friday": 0, "tags=ops": 1, "tags=ops,x": 0, "ids=" + made.ID + ",none": 1, "agentName=ann": 1, "agentName=bob": 0, "source=handbook&limit=1": 1,
	} {
		if got := found(query); len(got) != want {
			t.Errorf("%s: %v, want %d", query, got, want)
		}
	}
	viewer.Get(memories+"?limit=0").Problem(t, 400, "limit: must be a number and at least 1")
	viewer.Get(memories+"?includeDisabled=maybe").Problem(t, 400, "includeDisabled: must be true or false")
	changed := host.Decode[memoryAnswer](t, editor.Do(http.MethodPut, one, `{"content":"deploy on Fridays","source":""}`).Want(t, 200))
	if changed.Content != "deploy on Fridays" || changed.Source != "handbook" || len(changed.Tags) != 1 {
		t.Errorf("changed: %+v", changed)
	}
	editor.Do(http.MethodPut, one, `{"content":"x","namespace":"other"}`).Problem(t, 403)
	editor.Post(one+"/disable", "").Want(t, 204)
	if got := found("q=friday"); len(got) != 0 {
		t.Errorf("a disabled memory is found: %v", got)
	}
	if got := found("q=friday&includeDisabled=true"); len(got) != 1 {
		t.Errorf("a disabled memory is not found: %v", got)
	}
	editor.Post(one+"/enable", "").Want(t, 204)
	editor.Do(http.MethodDelete, one, "").Want(t, 204)
	viewer.Get(one).Problem(t, 404)
	editor.Post(one+"/enable", "").Problem(t, 404)
	if got := found("includeDeleted=true"); len(got) != 1 {
		t.Errorf("a discarded memory is not found: %v", got)
	}

	proposed := host.Decode[memoryAnswer](t, editor.Post(proposals, `{"title":"t","description":"Tags: a, b","content":"the gate is green"}`).Want(t, 201, `"status":"pending"`, `"type":"memory"`))
	p := proposals + "/" + proposed.ID
	editor.Post(p+"/review", `{"status":"accepted"}`).Problem(t, 403)
	approver.Post(p+"/apply", "").Problem(t, 409, "only an accepted proposal")
	approver.Post(p+"/review", `{"status":"maybe"}`).Problem(t, 400, "accepted or rejected")
	approver.Post(p+"/review", `{"status":"accepted","reviewer":"Ann","reviewNote":"fine"}`).Want(t, 204)
	approver.Post(p+"/review", `{"status":"rejected"}`).Problem(t, 409)
	editor.Post(p+"/apply", "").Problem(t, 403)
	first := host.Decode[memoryAnswer](t, approver.Post(p+"/apply", `{"appliedBy":"Ann"}`).Want(t, 200, `"source":"memory_proposal"`))
	again := host.Decode[memoryAnswer](t, approver.Post(p+"/apply", "").Want(t, 200))
	if first.ID != again.ID || first.SourceProposalID != proposed.ID || strings.Join(first.Tags, " ") != "a b" {
		t.Errorf("%+v, then %+v", first, again)
	}
	if got := host.Decode[memoryAnswer](t, viewer.Get(p).Want(t, 200)); got.Status != "applied" || got.AppliedMemoryID != first.ID || got.Reviewer != "Ann" || got.AppliedBy != "Ann" {
		t.Errorf("applied: %+v", got)
	}
	approver.Post(p+"/archive", "").Problem(t, 409)
	rest := host.Decode[memoryAnswer](t, editor.Post(proposals, `{"title":"policy of the house","type":"policy"}`).Want(t, 201))
	viewer.Get(proposals+"?q=house&status=pending&type=policy").Want(t, 200, rest.ID)
	viewer.Get(proposals+"?q=house&status=applied").Want(t, 200, `"items":[]`)
	editor.Post(proposals+"/"+rest.ID+"/archive", "").Want(t, 204)

	_, worker := s.RESTTask(t, "mine")
	const own = "/internal/v1/memories/default"
	if got := host.Decode[[]memoryAnswer](t, worker.Get(own+"?q=gate").Want(t, 200)); len(got) != 1 || got[0].ID != first.ID {
		t.Errorf("recalled: %+v", got)
	}
	worker.Get(own+"/"+first.ID).Want(t, 200)
	worker.Post(own, `{"content":"x"}`).Problem(t, 403)
	worker.Post(own+"/"+first.ID+"/disable", "").Problem(t, 403)
	worker.Get("/internal/v1/memories/other?q=gate").Problem(t, 403)
	const ownProposals = "/internal/v1/memory-proposals/default"
	worker.Post(ownProposals, `{"title":"t","namespace":"other"}`).Problem(t, 400, `namespace: "other" differs from "default"`)
	mine := host.Decode[memoryAnswer](t, worker.Post(ownProposals, `{"title":"t","taskName":"lie"}`).Want(t, 201, `"taskName":"mine"`))
	if mine.Origin == nil || mine.Origin.TaskName != "mine" {
		t.Errorf("origin: %+v", mine.Origin)
	}
	if got := host.Decode[[]memoryAnswer](t, worker.Get(ownProposals).Want(t, 200)); len(got) != 1 || got[0].ID != mine.ID {
		t.Errorf("own proposals: %+v", got)
	}
	for _, sub := range []string{"review", "apply", "archive"} {
		worker.Post(ownProposals+"/"+mine.ID+"/"+sub, `{"status":"accepted"}`).Problem(t, 403)
	}
	worker.Get("/internal/v1/sessions/default/search?query=x").Want(t, 200, "[]")
	worker.Get("/internal/v1/sessions/default/search?query=x&sessionName=other").Want(t, 200, "[]")
	viewer.Get("/internal/v1/sessions/default/search").Problem(t, 400, "query")
}

// Memories of a session are recalled by its own tasks if their Agent recalls no others, and not by those of a later session with the same name, whether
// they were written before or after the session, whatever their writer says, and also after a restart.
func TestMemoriesOfADeletedSession(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	sessions := s.Core(t).Sessions("default")
	kit.Must[*v1alpha1.Agent](t)(s.Core(t).Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "walled"}, Spec: v1alpha1.AgentSpec{Memory: &v1alpha1.AgentMemory{Recall: v1alpha1.MemoryScopeSession}},
	}, metav1.CreateOptions{}))
	const native = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	begin := func() {
		t.Helper()
		made := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "talk"}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeTask}}
		kit.Must[*v1alpha1.Session](t)(sessions.Create(t.Context(), made, metav1.CreateOptions{}))
	}
	joined := func(name string) *standalone.Client {
		t.Helper()
		_, worker := s.RESTTask(t, name, func(spec *v1alpha1.TaskSpec) {
			*spec = v1alpha1.TaskSpec{
				Type: v1alpha1.TaskTypeAI, Prompt: "p", SessionRef: &v1alpha1.TaskSessionReference{Name: "talk"}, AgentRef: &v1alpha1.NamespacedReference{Name: "walled"},
			}
		})
		return worker
	}
	write := func(name, status string) {
		t.Helper()
		s.REST(t, "default", "ed", "edit").Post(native+"memories", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Memory","metadata":{"name":"`+name+
			`"},"spec":{"content":"word `+name+`","sessionName":"talk"},"status":`+status+`}`).Want(t, 201)
	}
	recalled := func(worker *standalone.Client) string {
		t.Helper()
		var names []string
		for _, m := range host.Decode[v1alpha1.MemorySearch](t, worker.Post(native+"memorysearches",
			`{"apiVersion":"core.platform.ai/v1alpha1","kind":"MemorySearch","spec":{"query":"word","recall":true}}`).Want(t, 201)).Status.Items {
			names = append(names, m.Memory.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	write("early", "{}")
	begin()
	write("first", "{}")
	old := joined("one")
	if got := recalled(old); got != "early first" {
		t.Fatalf("the first session recalls %q", got)
	}
	write("late", "{}")
	if err := sessions.Delete(t.Context(), "talk", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	write("between", `{"sessionUID":"lie"}`)
	begin()
	write("second", `{"sessionUID":"lie"}`)
	worker := joined("two")
	for range 2 {
		if got := recalled(worker); got != "between second" {
			t.Errorf("the second session recalls %q", got)
		}
		for _, name := range []string{"early", "first", "late"} {
			worker.Get(native+"memories/"+name).Want(t, 403, "not for the task")
		}
		if got := host.Decode[memoryPage](t, s.REST(t, "default", "vi", "view").Get("/api/v1/memories?q=word").Want(t, 200)); len(got.Items) != 5 {
			t.Errorf("people find %+v", got)
		}
		s.Restart(t)
		worker = worker.At(s.URL)
	}
}
