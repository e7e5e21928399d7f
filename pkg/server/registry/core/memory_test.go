// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// who is a caller of the model: a worker, with the scope of its task, or a person.
type who struct {
	name           string
	worker         bool
	task           string
	agent, session string
	scope          v1alpha1.MemoryScope // what its agent may recall
	outside        bool                 // its run called a tool that brings text from elsewhere
	void           bool                 // its credential permits nothing
	ctx            context.Context
}

// note is a memory of the model. of is which session of that name it belongs to, counted from 1; 0 is not known yet.
type note struct {
	agent, session    string
	of                int
	disabled, deleted bool
	recalls           int64
}

// sessions counts the sessions of each name. A name is in gone while its last session is deleted.
type sessions struct {
	last map[string]int
	gone map[string]bool
}

// now returns which session of a name exists; 0 if none does.
func (s *sessions) now(name string) int {
	if s.gone[name] {
		return 0
	}
	return s.last[name]
}

// offer is a proposal of the model.
type offer struct {
	by       *who
	state    v1alpha1.MemoryProposalState
	kind     v1alpha1.MemoryProposalType
	memoryOf string
}

// recalls is the rule of recall: the memory's scope includes the caller's task.
func (w *who) recalls(n *note, includeDisabled bool, all *sessions) bool {
	now := all.now(n.session)
	of := n.session == "" || n.session == w.session && now != 0 && (n.of == 0 || n.of == now)
	mine := n.agent == "" || n.agent == w.agent
	switch {
	case n.deleted || n.disabled && !includeDisabled:
		return false
	case !w.worker || w.scope == v1alpha1.MemoryScopeNamespace:
		return true
	case w.scope == v1alpha1.MemoryScopeAgent:
		return mine
	}
	return mine && of
}

// applies is the rule of application.
func (w *who) applies(o *offer) string {
	switch {
	case w.worker:
		return "forbidden"
	case o.state == v1alpha1.ProposalApplied:
		return ""
	case o.state != v1alpha1.ProposalAccepted || o.kind != v1alpha1.ProposalMemory:
		return "conflict"
	case o.by.worker && o.by.outside && w.name == "owner":
		return "forbidden"
	}
	return ""
}

func outcome(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return "forbidden"
	case apierrors.IsConflict(err):
		return "conflict"
	}
	return err.Error()
}

// 4,000 generated actions of workers and people on memories, proposals and sessions have the outcomes of the model above.
func TestMemoryModel(t *testing.T) {
	t.Parallel()
	s := start(t)
	random := rand.New(rand.NewPCG(7, 11))
	callers := []*who{{name: "owner", ctx: s.As("owner", nil)}, {name: "ann", ctx: s.As("ann", nil)}, {name: "bob", ctx: s.As("bob", nil)}}
	const all, own, session = v1alpha1.MemoryScopeNamespace, v1alpha1.MemoryScopeAgent, v1alpha1.MemoryScopeSession
	s.MustApply("agents", withHead("kind: Agent\nspec: {memory: {recall: Session}}", "a"))
	s.MustApply("agents", withHead("kind: Agent\nspec: {}", "b"))
	s.MustApply("agents", withHead("kind: Agent\nspec: {memory: {recall: Agent}}", "c"))
	for i, w := range []*who{
		{scope: all},
		{agent: "a", scope: session},
		{agent: "b", scope: all},
		{session: "s", scope: all},
		{agent: "a", session: "s", scope: session},
		{agent: "a", session: "r", scope: session},
		{agent: "a", scope: session, outside: true},
		{session: "s", scope: all, outside: true},
		{agent: "c", session: "s", scope: own},
		{agent: "gone", session: "r", scope: session},
	} {
		w.name, w.worker, w.task = fmt.Sprintf("worker%d", i), true, fmt.Sprintf("t%d", i)
		text := "kind: Task\nspec: {type: ai, prompt: p"
		if w.agent != "" {
			text += ", agentRef: {name: " + w.agent + "}"
		}
		if w.session != "" {
			text += ", sessionRef: {name: " + w.session + "}"
		}
		obj, err := s.Decode(withHead(text+"}", w.task))
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Create(s.As("owner", nil), "tasks", obj)
		if err != nil {
			t.Fatal(err)
		}
		w.ctx = s.worker(made.(*v1alpha1.Task)) //nolint:fatcontext // each worker has one of its own
		for _, tool := range map[bool][]string{false: {"remember"}, true: {"web_fetch", "remember"}}[w.outside] {
			e := ev(v1alpha1.EventToolCallStarted)
			e.TaskName, e.ToolName, e.ToolCallID = w.task, tool, "call-"+tool
			if _, err := s.Create(w.ctx, "executionevents", e); err != nil {
				t.Fatal(err)
			}
		}
		callers = append(callers, w)
	}
	callers = append(callers, s.voidWorkers()...)
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	alive := &sessions{map[string]int{}, map[string]bool{"s": true, "r": true}}
	notes, offers := map[string]*note{}, map[string]*offer{}
	var noteNames, offerNames []string
	proposed := map[string]int{}
	for i := range 4000 {
		w := callers[random.IntN(len(callers))]
		switch action := pick("write", "session", "recall", "recall", "get", "toggle", "propose", "propose", "review", "review", "review", "review", "apply", "apply", "apply", "archive"); action {
		case "write":
			name, n := fmt.Sprintf("m%d", i), &note{agent: pick("", "a", "b", "c"), session: pick("", "s", "r")}
			n.of = alive.now(n.session)
			_, err := s.Create(w.ctx, "memories", &v1alpha1.Memory{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1alpha1.MemorySpec{Content: "common word", AgentName: n.agent, SessionName: n.session},
			})
			if want := map[bool]string{true: "forbidden"}[w.worker]; outcome(err) != want {
				t.Fatalf("%d: %s writes: %v, want %q", i, w.name, err, want)
			}
			if err == nil {
				notes[name] = n
				noteNames = append(noteNames, name)
			}
		case "session":
			name := pick("s", "r")
			if alive.now(name) == 0 {
				s.MustApply("sessions", withHead("kind: Session\nspec: {}", name))
				alive.last[name]++
				delete(alive.gone, name)
				continue
			}
			s.Remove("sessions", name)
			for _, n := range notes {
				if n.session == name && n.of == 0 {
					n.of = alive.now(name)
				}
			}
			alive.gone[name] = true
		case "recall":
			disabled := random.IntN(2) == 0
			out, err := s.Create(w.ctx, "memorysearches", &v1alpha1.MemorySearch{Spec: v1alpha1.MemorySearchSpec{
				Query: pick("", "word"), IncludeDisabled: disabled, Limit: 200, Recall: true, AgentName: "", IncludeDeleted: false,
			}})
			if w.void {
				if outcome(err) != "forbidden" {
					t.Fatalf("%d: %s recalls: %v", i, w.name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(i, err)
			}
			var got, want []string
			for name, n := range notes {
				if w.recalls(n, disabled, alive) {
					want = append(want, name)
					if w.worker {
						if n.session == w.session && n.of == 0 {
							n.of = alive.now(n.session)
						}
						n.recalls++
					}
				}
			}
			for _, m := range out.(*v1alpha1.MemorySearch).Status.Items {
				got = append(got, m.Memory.Name)
				if n := notes[m.Memory.Name]; n != nil && n.recalls != m.Memory.Status.RecalledCount {
					t.Fatalf("%d: %s is recalled %d times, want %d", i, m.Memory.Name, m.Memory.Status.RecalledCount, n.recalls)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%d: %s recalls %v, want %v", i, w.name, got, want)
			}
		case "get", "toggle":
			if len(noteNames) == 0 {
				continue
			}
			name := pick(noteNames...)
			n := notes[name]
			if action == "get" {
				_, err := s.Storage["memories"].(rest.Getter).Get(w.ctx, name, &metav1.GetOptions{})
				if want := !w.void && (!w.worker || w.recalls(n, true, alive)); (err == nil) != want {
					t.Fatalf("%d: %s gets %s: %v, want %v", i, w.name, name, err, want)
				}
				continue
			}
			sub := pick("disable", "enable", "discard", "restore")
			want := ""
			switch {
			case w.worker:
				want = "forbidden"
			case n.deleted && (sub == "disable" || sub == "enable"):
				want = "conflict"
			case sub == "disable" || sub == "enable":
				n.disabled = sub == "disable"
			default:
				n.deleted = sub == "discard"
			}
			if _, err := s.CreateNamed(w.ctx, "memories/"+sub, name, &v1alpha1.MemoryChange{}); outcome(err) != want {
				t.Fatalf("%d: %s %ss %s: %v, want %q", i, w.name, sub, name, err, want)
			}
		case "propose":
			name, agent := fmt.Sprintf("p%d", i), pick("", "a", "b")
			o := &offer{by: w, state: v1alpha1.ProposalPending, kind: v1alpha1.MemoryProposalType(pick("memory", "memory", "policy"))}
			p := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1alpha1.MemoryProposalSpec{
				Title: "common word", Type: o.kind, AgentName: agent, TaskName: "lie",
			}}
			p.Status.Origin = &v1alpha1.MemoryOrigin{TaskName: "lie", TaskUID: "lie"}
			made, err := s.Create(w.ctx, "memoryproposals", p)
			want := ""
			if w.void || w.worker && (agent != "" && agent != w.agent || proposed[w.task] == mostProposals) {
				want = "forbidden"
			}
			if outcome(err) != want {
				t.Fatalf("%d: %s proposes for %q: %v, want %q", i, w.name, agent, err, want)
			}
			if err != nil {
				continue
			}
			checkOrigin(t, w, made.(*v1alpha1.MemoryProposal))
			if w.worker {
				proposed[w.task]++
			}
			offers[name] = o
			offerNames = append(offerNames, name)
		default:
			if len(offerNames) == 0 {
				continue
			}
			name := pick(offerNames[max(0, len(offerNames)-12):]...) // older ones are mostly closed
			o := offers[name]
			var body runtime.Object
			want, next := "", o.state
			switch action {
			case "review":
				next = v1alpha1.MemoryProposalState(pick("accepted", "accepted", "rejected"))
				body = &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{Status: next}}
				if o.state != v1alpha1.ProposalPending {
					want = "conflict"
				}
			case "apply":
				body, want, next = &v1alpha1.MemoryProposalApplication{}, w.applies(o), v1alpha1.ProposalApplied
			case "archive":
				body, next = &v1alpha1.MemoryChange{}, v1alpha1.ProposalArchived
				if o.state == v1alpha1.ProposalApplied {
					want = "conflict"
				}
			}
			if w.worker {
				want = "forbidden"
			}
			out, err := s.CreateNamed(w.ctx, "memoryproposals/"+action, name, body)
			if outcome(err) != want {
				t.Fatalf("%d: %s: %s of %s, which is %s and by %s: %v, want %q", i, w.name, action, name, o.state, o.by.name, err, want)
			}
			if err != nil {
				continue
			}
			o.state = next
			if m, ok := out.(*v1alpha1.Memory); ok {
				if o.memoryOf == "" {
					o.memoryOf = m.Name
					notes[m.Name] = &note{agent: m.Spec.AgentName}
					noteNames = append(noteNames, m.Name)
				}
				if m.Name != o.memoryOf || o.by.worker && m.Spec.AgentName != o.by.agent {
					t.Fatalf("%d: %s of %s is %+v", i, action, name, m)
				}
			}
		}
	}
	applied := 0
	for _, o := range offers {
		if o.state == v1alpha1.ProposalApplied {
			applied++
		}
	}
	if len(notes) < 40 || applied < 10 {
		t.Errorf("only %d memories and %d applied proposals", len(notes), applied)
	}
}

// voidWorkers are workers whose credential permits nothing: without a task, of another namespace, of a run that is over,
// of an attempt that is over, and of a task that was deleted and created again.
func (s *server) voidWorkers() []*who {
	ended, retried, again := s.mustTask("ended", "{type: ai, prompt: p}"), s.mustTask("retried", "{type: ai, prompt: p}"), s.mustTask("again", "{type: ai, prompt: p}")
	elsewhere := again.DeepCopy()
	elsewhere.Namespace = "other"
	all := []*who{
		{name: "no task", ctx: s.As("system:serviceaccount:default:platform-ai-worker", nil)},
		{name: "elsewhere", ctx: s.workerOf(elsewhere, "run")},
		{name: "ended", ctx: s.worker(ended)},
		{name: "earlier attempt", ctx: s.workerOf(retried, "earlier")},
		{name: "earlier task", ctx: s.worker(again)},
	}
	s.SetPhase("ended", v1alpha1.TaskSucceeded)
	s.worker(retried)
	s.SetPhase("again", v1alpha1.TaskSucceeded)
	s.Remove("tasks", "again")
	s.worker(s.mustTask("again", "{type: ai, prompt: p}"))
	for _, w := range all {
		w.worker, w.void = true, true
	}
	return all
}

// checkOrigin checks that the server says where a proposal is from, whatever the client said.
func checkOrigin(t *testing.T, w *who, p *v1alpha1.MemoryProposal) {
	t.Helper()
	o := p.Status.Origin
	if !w.worker {
		if o != nil || p.Status.ProposedBy != w.name {
			t.Fatalf("origin of a proposal by %s: %+v by %s", w.name, o, p.Status.ProposedBy)
		}
		return
	}
	if o == nil || o.TaskName != w.task || o.TaskUID == "lie" || o.RequestedBy != "owner" || o.OutsideText != w.outside || o.ToolCallID != "call-remember" || o.Sequence == 0 ||
		p.Spec.TaskName != w.task || p.Spec.AgentName != w.agent {
		t.Fatalf("proposal of %+v: %+v, %+v", w, p.Spec, o)
	}
}

// Everything that came from a task is removed by its name, with the rows of the index.
func TestForget(t *testing.T) {
	s := start(t)
	task := s.mustTask("source", "{type: ai, prompt: p}")
	for i := range 3 {
		p := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), Namespace: "default"}, Spec: v1alpha1.MemoryProposalSpec{Title: "poison", Type: v1alpha1.ProposalMemory}}
		if _, err := s.Create(s.worker(task), "memoryproposals", p); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		path string
		body runtime.Object
	}{
		{"memoryproposals/review", &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{Status: v1alpha1.ProposalAccepted}}},
		{"memoryproposals/apply", &v1alpha1.MemoryProposalApplication{}},
	} {
		if _, err := s.CreateNamed(s.As("decider", nil), step.path, "p0", step.body); err != nil {
			t.Fatal(err)
		}
	}
	if s.Rows(t, 'i') == 0 {
		t.Fatal("the memory is not indexed")
	}
	for _, resource := range []string{"memoryproposals", "memories"} {
		_, err := s.Storage[resource].(rest.CollectionDeleter).DeleteCollection(s.User(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.origin.taskName", "source")})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Storage[resource].(rest.Lister).List(s.User(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := meta.LenList(list); n != 0 {
			t.Errorf("%d %s are left", n, resource)
		}
	}
	if n := s.Rows(t, 'i'); n != 0 {
		t.Errorf("%d rows of the index are left", n)
	}
}

// mostProposals is how many proposals of one task may exist.
const mostProposals = 100

// A task makes so many proposals and no more, until one of them is deleted. People and other tasks go on.
func TestProposalsOfATask(t *testing.T) {
	s := start(t)
	busy, other := s.mustTask("busy", "{type: ai, prompt: p}"), s.mustTask("other", "{type: ai, prompt: p}")
	propose := func(ctx context.Context, name string) error {
		p := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1alpha1.MemoryProposalSpec{Title: "t", Type: v1alpha1.ProposalMemory}}
		_, err := s.Create(ctx, "memoryproposals", p)
		return err
	}
	for i := range mostProposals {
		if err := propose(s.worker(busy), fmt.Sprintf("p%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := propose(s.worker(busy), "more"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `task "busy" has made 100 proposals`) {
		t.Errorf("one more: %v", err)
	}
	for name, ctx := range map[string]context.Context{"a": s.worker(other), "b": s.User()} {
		if err := propose(ctx, name); err != nil {
			t.Errorf("somebody else: %v", err)
		}
	}
	if _, _, err := s.Storage["memoryproposals"].(rest.GracefulDeleter).Delete(s.User(), "p7", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := propose(s.worker(busy), "more"); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}
