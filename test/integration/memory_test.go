// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
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
	editor, approver, viewer := restAs(t, s, "default", "ed", "edit"), restAs(t, s, "default", "ap", "admin"), restAs(t, s, "default", "vi", "view")
	const memories, proposals = "/api/v1/memories", "/api/v1/memory-proposals"
	made := decode[memoryAnswer](t, editor.post(memories, `{"content":"deploy on Tuesdays, token=ghp_0123456789abcdefghijABCDEFGHIJ012345","tags":["ops"],"source":"handbook","agentName":"ann"}`).want(t, 201))
	if !strings.HasPrefix(made.ID, "mem-") || strings.Contains(made.Content, "ghp_") || made.Namespace != "default" {
		t.Errorf("made: %+v", made)
	}
	one := memories + "/" + made.ID
	editor.post(memories, `{"tags":["x"]}`).problem(t, 400, "content: is required")
	editor.post(memories, `{"content":"x","colour":"red"}`).problem(t, 400, "colour")
	viewer.post(memories, `{"content":"x"}`).problem(t, 403)
	viewer.get(one).want(t, 200, `"recalledCount":0`)
	found := func(query string) (ids []string) {
		t.Helper()
		for _, m := range decode[memoryPage](t, viewer.get(memories+"?"+query).want(t, 200, `"metadata":{}`)).Items {
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
	viewer.get(memories+"?limit=0").problem(t, 400, "limit: must be a number and at least 1")
	viewer.get(memories+"?includeDisabled=maybe").problem(t, 400, "includeDisabled: must be true or false")
	changed := decode[memoryAnswer](t, editor.do(http.MethodPut, one, `{"content":"deploy on Fridays","source":""}`).want(t, 200))
	if changed.Content != "deploy on Fridays" || changed.Source != "handbook" || len(changed.Tags) != 1 {
		t.Errorf("changed: %+v", changed)
	}
	editor.do(http.MethodPut, one, `{"content":"x","namespace":"other"}`).problem(t, 403)
	editor.post(one+"/disable", "").want(t, 204)
	if got := found("q=friday"); len(got) != 0 {
		t.Errorf("a disabled memory is found: %v", got)
	}
	if got := found("q=friday&includeDisabled=true"); len(got) != 1 {
		t.Errorf("a disabled memory is not found: %v", got)
	}
	editor.post(one+"/enable", "").want(t, 204)
	editor.do(http.MethodDelete, one, "").want(t, 204)
	viewer.get(one).problem(t, 404)
	editor.post(one+"/enable", "").problem(t, 404)
	if got := found("includeDeleted=true"); len(got) != 1 {
		t.Errorf("a discarded memory is not found: %v", got)
	}

	proposed := decode[memoryAnswer](t, editor.post(proposals, `{"title":"t","description":"Tags: a, b","content":"the gate is green"}`).want(t, 201, `"status":"pending"`, `"type":"memory"`))
	p := proposals + "/" + proposed.ID
	editor.post(p+"/review", `{"status":"accepted"}`).problem(t, 403)
	approver.post(p+"/apply", "").problem(t, 409, "only an accepted proposal")
	approver.post(p+"/review", `{"status":"maybe"}`).problem(t, 400, "accepted or rejected")
	approver.post(p+"/review", `{"status":"accepted","reviewer":"Ann","reviewNote":"fine"}`).want(t, 204)
	approver.post(p+"/review", `{"status":"rejected"}`).problem(t, 409)
	editor.post(p+"/apply", "").problem(t, 403)
	first := decode[memoryAnswer](t, approver.post(p+"/apply", `{"appliedBy":"Ann"}`).want(t, 200, `"source":"memory_proposal"`))
	again := decode[memoryAnswer](t, approver.post(p+"/apply", "").want(t, 200))
	if first.ID != again.ID || first.SourceProposalID != proposed.ID || strings.Join(first.Tags, " ") != "a b" {
		t.Errorf("%+v, then %+v", first, again)
	}
	if got := decode[memoryAnswer](t, viewer.get(p).want(t, 200)); got.Status != "applied" || got.AppliedMemoryID != first.ID || got.Reviewer != "Ann" || got.AppliedBy != "Ann" {
		t.Errorf("applied: %+v", got)
	}
	approver.post(p+"/archive", "").problem(t, 409)
	rest := decode[memoryAnswer](t, editor.post(proposals, `{"title":"policy of the house","type":"policy"}`).want(t, 201))
	viewer.get(proposals+"?q=house&status=pending&type=policy").want(t, 200, rest.ID)
	viewer.get(proposals+"?q=house&status=applied").want(t, 200, `"items":[]`)
	editor.post(proposals+"/"+rest.ID+"/archive", "").want(t, 204)

	_, worker := restTask(t, s, "mine")
	const own = "/internal/v1/memories/default"
	if got := decode[[]memoryAnswer](t, worker.get(own+"?q=gate").want(t, 200)); len(got) != 1 || got[0].ID != first.ID {
		t.Errorf("recalled: %+v", got)
	}
	worker.get(own+"/"+first.ID).want(t, 200)
	worker.post(own, `{"content":"x"}`).problem(t, 403)
	worker.post(own+"/"+first.ID+"/disable", "").problem(t, 403)
	worker.get("/internal/v1/memories/other?q=gate").problem(t, 403)
	const ownProposals = "/internal/v1/memory-proposals/default"
	worker.post(ownProposals, `{"title":"t","namespace":"other"}`).problem(t, 400, `namespace: "other" differs from "default"`)
	mine := decode[memoryAnswer](t, worker.post(ownProposals, `{"title":"t","taskName":"lie"}`).want(t, 201, `"taskName":"mine"`))
	if mine.Origin == nil || mine.Origin.TaskName != "mine" {
		t.Errorf("origin: %+v", mine.Origin)
	}
	if got := decode[[]memoryAnswer](t, worker.get(ownProposals).want(t, 200)); len(got) != 1 || got[0].ID != mine.ID {
		t.Errorf("own proposals: %+v", got)
	}
	for _, sub := range []string{"review", "apply", "archive"} {
		worker.post(ownProposals+"/"+mine.ID+"/"+sub, `{"status":"accepted"}`).problem(t, 403)
	}
	worker.get("/internal/v1/sessions/default/search?query=x").want(t, 200, "[]")
	worker.get("/internal/v1/sessions/default/search?query=x&sessionName=other").problem(t, 403)
	viewer.get("/internal/v1/sessions/default/search").problem(t, 400, "query")
}

// Memories of a session are recalled by its own tasks, and not by those of a later session with the same name, whether
// they were written before or after the session, whatever their writer says, and also after a restart.
func TestMemoriesOfADeletedSession(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	sessions := clientOf(t, s).Sessions("default")
	const native = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	begin := func() {
		t.Helper()
		made := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "talk"}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeTask}}
		must[*v1alpha1.Session](t)(sessions.Create(t.Context(), made, metav1.CreateOptions{}))
	}
	joined := func(name string) *restClient {
		t.Helper()
		_, worker := restTask(t, s, name, func(spec *v1alpha1.TaskSpec) {
			*spec = v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "p", SessionRef: &v1alpha1.TaskSessionReference{Name: "talk"}}
		})
		return worker
	}
	write := func(name, status string) {
		t.Helper()
		restAs(t, s, "default", "ed", "edit").post(native+"memories", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Memory","metadata":{"name":"`+name+
			`"},"spec":{"content":"word `+name+`","sessionName":"talk"},"status":`+status+`}`).want(t, 201)
	}
	recalled := func(worker *restClient) string {
		t.Helper()
		var names []string
		for _, m := range decode[v1alpha1.MemorySearch](t, worker.post(native+"memorysearches",
			`{"apiVersion":"core.platform.ai/v1alpha1","kind":"MemorySearch","spec":{"query":"word","recall":true}}`).want(t, 201)).Status.Items {
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
			worker.get(native+"memories/"+name).want(t, 403, "not for the task")
		}
		if got := decode[memoryPage](t, restAs(t, s, "default", "vi", "view").get("/api/v1/memories?q=word").want(t, 200)); len(got.Items) != 5 {
			t.Errorf("people find %+v", got)
		}
		s.Restart(t)
		worker = worker.at(s.URL)
	}
}
