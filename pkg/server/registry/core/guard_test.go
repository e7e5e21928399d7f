// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// world contains objects of several tasks, and workers with all kinds of credentials.
type world struct {
	*server
	// objects holds, by resource, the names of objects and the task that each belongs to: the task itself, its
	// children or what it names.
	objects map[string]map[string]string
	callers map[string]context.Context
}

// newWorld creates the tasks mine, other, ended, retried, which continues other and is in its second run, and child, which mine controls.
// Each has a session, an agent, a provider, a tool, a skill, an event and an approval of its own.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: start(t), objects: map[string]map[string]string{}, callers: map[string]context.Context{}}
	byTask := map[string]*v1alpha1.Task{}
	repositories := map[string]string{
		"other":   `, workspace: {gitRepo: "https://h/r", intent: write, publicationCredentialRef: {name: s}}`,
		"retried": `, workspace: {gitRepo: "https://h/r", intent: read}, priorTaskRef: {name: other}`,
	}
	for _, name := range []string{"mine", "other", "ended", "retried", "child"} {
		for resource, text := range map[string]string{
			"sessions":  "kind: Session\nspec: {sessionType: task}",
			"providers": "kind: Provider\nspec: {type: openai, secretRef: {name: s}}",
			"tools":     "kind: Tool\nspec: {description: d, http: {url: \"https://h/\"}}",
			"skills":    "kind: Skill\nspec: {description: d, content: {inline: text}}",
			"agents":    "kind: Agent\nspec: {providerRef: {name: " + name + "}, tools: [{name: " + name + "}]}",
			"tasks":     "kind: Task\nspec: {type: ai, prompt: p, agentRef: {name: " + name + "}, sessionRef: {name: " + name + "}, ai: {skills: [{name: " + name + "}]}" + repositories[name] + "}",
		} {
			obj, err := w.Decode(withHead(text, name))
			if err != nil {
				t.Fatal(resource, err)
			}
			if name == "child" && resource == "tasks" {
				continue // needs its parent
			}
			w.add(resource, obj, name)
			if task, ok := obj.(*v1alpha1.Task); ok {
				byTask[name] = task
			}
		}
	}
	child := byTask["mine"].DeepCopy()
	coordinates(t, w.server, "mine")
	child.ObjectMeta = metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(byTask["mine"], v1alpha1.SchemeGroupVersion.WithKind("Task"))}}
	child.Spec.AgentRef.Name, child.Spec.SessionRef, child.Spec.AI = "child", nil, nil
	made, err := w.Create(w.worker(byTask["mine"]), "tasks", child)
	if err != nil {
		t.Fatal(err)
	}
	w.note("tasks", "child", "child")
	byTask["child"] = made.(*v1alpha1.Task)
	if _, err := w.Update(w.User(), "tasks", "child", func(o runtime.Object) { // what a worker cannot give it
		spec := &o.(*v1alpha1.Task).Spec
		spec.SessionRef = &v1alpha1.TaskSessionReference{Name: "child", Append: new(true), MaxMessages: new(int32(50))}
		spec.AI = &v1alpha1.TaskAI{Skills: []v1alpha1.SkillReference{{Name: "child"}}}
	}); err != nil {
		t.Fatal(err)
	}
	for name, task := range byTask {
		w.be("worker of "+name, w.worker(task))
		w.be("old credential of "+name, w.As("system:serviceaccount:default:platform-ai-worker", map[string][]string{
			v1alpha1.ExtraTaskNamespace: {"default"}, v1alpha1.ExtraTaskName: {name}, v1alpha1.ExtraTaskUID: {string(task.UID)},
		}))
		e := ev(v1alpha1.EventModelMessage)
		e.TaskName = name
		stored, err := w.Create(w.User(), "executionevents", e)
		if err != nil {
			t.Fatal(err)
		}
		w.note("executionevents", stored.(*v1alpha1.ExecutionEvent).Name, name)
		spec := v1alpha1.ApprovalSpec{TaskName: name, TaskUID: task.UID, TargetTool: "exec", TargetArgsDigest: strings.Repeat("0", 64)}
		request := approval.RequestEvent("default", spec)
		if _, err := w.CreateNamed(w.User(), "tasks/events", name, request); err != nil {
			t.Fatal(err)
		}
		w.note("approvals", approval.ID("default", name, task.UID, "exec", spec.TargetArgsDigest, ""), name)
	}
	w.addClosed()
	w.be("first run of retried", w.callers["worker of retried"])
	w.be("worker of retried", w.workerOf(byTask["retried"], "second"))
	if _, err := w.Update(w.User(), "tasks/status", "retried", func(o runtime.Object) { o.(*v1alpha1.Task).Status.JobUID = types.UID("second") }); err != nil {
		t.Fatal(err)
	}
	w.SetPhase("ended", v1alpha1.TaskSucceeded)
	w.be("account of workers", w.As("system:serviceaccount:default:platform-container-worker", nil))
	w.be("worker of a namesake", w.workerOf(&v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine", UID: "gone"}}, "r"))
	w.be("somebody", w.User())
	return w
}

// addClosed creates an object of each kind of which there is none yet, from its example: no worker sees it.
func (w *world) addClosed() {
	w.t.Helper()
	for path, st := range w.Storage {
		_, excused := elsewhere[path]
		if kept, ok := st.(rest.Creater); ok && !strings.Contains(path, "/") && !excused && w.objects[path] == nil {
			kinds, _, err := w.Scheme.ObjectKinds(kept.New())
			if err != nil {
				w.t.Fatal(err)
			}
			data, err := os.ReadFile("../../../../artifacts/examples/" + strings.ToLower(kinds[0].Kind) + ".yaml")
			if err != nil {
				w.t.Fatalf("%s: the world needs an object of it, or the list elsewhere says where its guard is tested: %v", path, err)
			}
			first, _, _ := strings.Cut(string(data), "\n---\n")
			obj, err := w.Decode(first)
			if err != nil {
				w.t.Fatal(path, err)
			}
			w.add(path, obj, "nobody")
		}
	}
}

func (w *world) be(caller string, ctx context.Context) {
	maps.Copy(w.callers, map[string]context.Context{caller: ctx})
}

func withHead(text, name string) string {
	return fmt.Sprintf("apiVersion: core.platform.ai/v1alpha1\nmetadata: {name: %s}\n", name) + text
}

func (w *world) add(resource string, obj runtime.Object, task string) runtime.Object {
	w.t.Helper()
	made, err := w.Create(w.User(), resource, obj)
	if err != nil {
		w.t.Fatal(resource, err)
	}
	m, err := meta.Accessor(made)
	if err != nil {
		w.t.Fatal(err)
	}
	m2, _ := meta.Accessor(obj)
	m2.SetUID(m.GetUID())
	m2.SetNamespace("default")
	w.note(resource, m.GetName(), task)
	return made
}

func (w *world) note(resource, name, task string) {
	if w.objects[resource] == nil {
		w.objects[resource] = map[string]string{}
	}
	w.objects[resource][name] = task
}

// may is the model of a worker's permissions: whether the caller may use the verb on an object of a task.
func may(caller, path, verb, of string) bool {
	if caller == "somebody" {
		return true
	}
	resource, sub, _ := strings.Cut(path, "/")
	own, alive := strings.CutPrefix(caller, "worker of ")
	if !alive {
		own, alive = strings.CutPrefix(caller, "old credential of ")
	}
	appends := verb == "create" && (path == "tasks/events" || path == "executionevents")
	if !alive || own == "a namesake" || own == "ended" && (!appends || of != own) {
		return false
	}
	if appends {
		return own == of // the stream of an ended task is closed, and the event log reports that
	}
	family := own == of || own == "mine" && of == "child"
	switch {
	case verb == "create" && slices.Contains([]string{"tasks/result", "tasks/log", "tasks/artifacts", "tasks/delta", "tasks/proxy", "tasks/codehost", "tasks/connectortool", "tasks/fork", "tasks/plan", "tasks/messages", "tasks/inbox", "tasks/reply"}, path):
		return own == of
	case path == "tasks/inbox", path == "tasks/proxy":
		return own == of && verb == "get"
	case path == "tasks/calls", path == "tasks/recording": // for people
		return false
	case path == "tasks/cancel":
		return family
	case path == "tasks/detach":
		return family && own != of
	case path == "tasks/transactiontoken":
		return family && own != of
	case path == "tasks":
		return family && (verb == "get" || verb == "list" || verb == "watch")
	case path == "executionevents":
		return family && (verb == "get" || verb == "list" || verb == "watch")
	case path == "tasks/delta" && verb == "get":
		return family || own == "retried" && of == "other"
	case verb == "get" && resource == "tasks":
		return family
	case path == "approvals/decision":
		return false
	case path == "sessions/turn": // of a chat, which has no worker
		return false
	case verb == "get" && sub != "":
		return own == of
	}
	return own == of && (verb == "get" || verb == "list" || verb == "watch")
}

// attempt is one request about one object.
type attempt struct {
	verb string
	do   func(ctx context.Context, name string) error
}

// attempts returns all requests that a storage can serve about one object. They do not change existing objects.
func (w *world) attempts(path string) []attempt {
	st := w.Storage[path]
	resource, _, _ := strings.Cut(path, "/")
	var all []attempt
	add := func(verb string, do func(ctx context.Context, name string) error) {
		all = append(all, attempt{verb, do})
	}
	if g, ok := st.(rest.Getter); ok {
		add("get", func(ctx context.Context, name string) error {
			_, err := g.Get(coretest.WithPath(ctx, path), name, &metav1.GetOptions{})
			return err
		})
	}
	if l, ok := st.(rest.Lister); ok {
		add("list", func(ctx context.Context, name string) error {
			list, err := l.List(coretest.WithPath(ctx, path), w.selecting(resource, name))
			if err == nil && meta.LenList(list) == 0 {
				err = errUnseen
			}
			return err
		})
	}
	if l, ok := st.(rest.Watcher); ok {
		add("watch", func(ctx context.Context, name string) error {
			return w.sawInWatch(l, coretest.WithPath(ctx, path), w.selecting(resource, name))
		})
	}
	if c, ok := st.(rest.Creater); ok {
		add("create", func(ctx context.Context, name string) error {
			obj := c.New()
			if e, ok := obj.(*v1alpha1.ExecutionEvent); ok {
				e.TaskName, e.Type = w.objects["executionevents"][name], v1alpha1.EventModelMessage
			}
			_, err := c.Create(coretest.WithPath(ctx, path), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	if u, ok := st.(rest.Updater); ok {
		add("update", func(ctx context.Context, name string) error {
			_, _, err := u.Update(coretest.WithPath(ctx, path), name, rest.DefaultUpdatedObjectInfo(u.New()), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false,
				&metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	if d, ok := st.(rest.GracefulDeleter); ok {
		add("delete", func(ctx context.Context, name string) error {
			_, _, err := d.Delete(coretest.WithPath(ctx, path), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	if d, ok := st.(rest.CollectionDeleter); ok {
		add("deletecollection", func(ctx context.Context, name string) error {
			_, err := d.DeleteCollection(coretest.WithPath(ctx, path), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, w.selecting(resource, name))
			return err
		})
	}
	if c, ok := st.(rest.NamedCreater); ok {
		add("create", func(ctx context.Context, name string) error {
			_, err := c.Create(coretest.WithPath(ctx, path), name, c.(rest.Storage).New(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	if c, ok := st.(rest.Connecter); ok {
		for _, method := range c.ConnectMethods() {
			add(map[string]string{"GET": "get", "POST": "create"}[method], func(ctx context.Context, name string) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel() // a stream would not end
				if a := w.Call(ctx, path, name, "", method, nil); a.Code == http.StatusForbidden {
					return apierrors.NewForbidden(v1alpha1.Resource(path), name, fmt.Errorf("%s", a.Body))
				}
				return nil
			})
		}
	}
	return all
}

var errUnseen = fmt.Errorf("not seen")

// selecting narrows a list to the objects of a task if the resource supports that, and otherwise to one object.
func (w *world) selecting(resource, name string) *internalversion.ListOptions {
	field, value := "metadata.name", name
	if resource == "executionevents" {
		field, value = "taskName", w.objects[resource][name]
	}
	return &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, value)}
}

// sawInWatch reports whether a watch from the beginning returns the selected object. The end is found by bookmarks.
func (w *world) sawInWatch(l rest.Watcher, ctx context.Context, o *internalversion.ListOptions) error {
	o.SendInitialEvents, o.AllowWatchBookmarks, o.ResourceVersionMatch = new(true), true, metav1.ResourceVersionMatchNotOlderThan
	got, err := l.Watch(ctx, o)
	if err != nil {
		return err
	}
	defer got.Stop()
	seen := errUnseen
	for e := range got.ResultChan() {
		switch e.Type {
		case "BOOKMARK":
			return seen
		case "ERROR":
			return apierrors.FromObject(e.Object)
		}
		seen = nil
	}
	return seen
}

// elsewhere are the resources of which the world has no object, and where their guards are tested.
var elsewhere = map[string]string{
	"memories":                 "TestMatrix of test/identity, and memory_test.go: what a worker sees depends on its session",
	"memoryproposals":          "TestMatrix of test/identity, and memory_test.go: a worker sees those of its task",
	"catalogtools":             "TestMatrix of test/identity: a view of tools",
	"chats":                    "TestMatrix of test/identity: answered and not stored",
	"toolcalls":                "TestMatrix of test/identity: answered and not stored",
	"taskqueries":              "TestMatrix of test/identity: answered and not stored",
	"memorysearches":           "TestMatrix of test/identity: answered and not stored",
	"memoryproposalsearches":   "TestMatrix of test/identity: answered and not stored",
	"transcriptsearches":       "TestMatrix of test/identity: answered and not stored",
	"usagereports":             "TestMatrix of test/identity: answered and not stored",
	"usagemeasurements":        "TestMatrix of test/identity: a view of the ledger",
	"usagelinks":               "TestMatrix of test/identity: stored in the ledger",
	"codehostdeliveries":       "TestMatrix of test/identity: closed to workers",
	"monitorruns":              "TestMatrix of test/identity: closed to workers",
	"monitoritems":             "TestMatrix of test/identity: closed to workers",
	"monitorcommands":          "TestMatrix of test/identity: closed to workers",
	"monitorworkactions":       "TestMatrix of test/identity: closed to workers",
	"monitormutations":         "TestMatrix of test/identity: closed to workers",
	"connectorproviders":       "TestMatrix of test/identity: closed to workers",
	"connections":              "TestMatrix of test/identity: closed to workers",
	"connectionauthorizations": "TestMatrix of test/identity: answered and not stored",
	"gatewayclasses":           "TestMatrix of test/identity: closed to workers",
	"gateways":                 "TestMatrix of test/identity: closed to workers",
	"gatewaybindings":          "TestMatrix of test/identity: closed to workers",
	"gatewayidentities":        "TestMatrix of test/identity: closed to workers",
	"gatewayevents":            "TestMatrix of test/identity: closed to workers",
	"gatewaydeliveries":        "TestMatrix of test/identity: closed to workers",
	"gatewayrecordqueries":     "TestMatrix of test/identity: answered and not stored",
	"tooleffects":              "TestMatrix of test/identity: closed to workers",
}

// For all resources, subresources and verbs, also those that are added later, every caller is refused with 403, or
// does not see an object, exactly when the model says so.
func TestWorkersAreHeld(t *testing.T) {
	w := newWorld(t)
	known := 0
	for _, path := range slices.Sorted(maps.Keys(w.Storage)) {
		resource, _, _ := strings.Cut(path, "/")
		attempts := w.attempts(path)
		if _, excused := elsewhere[resource]; excused == (len(w.objects[resource]) > 0) {
			t.Errorf("%s: the world has %d objects; it needs one, unless the list elsewhere says where the guard is tested", resource, len(w.objects[resource]))
		}
		if len(attempts) == 0 {
			t.Errorf("%s: no verb of it is tried", path)
		}
		for _, a := range attempts {
			for object, of := range w.objects[resource] {
				for caller, ctx := range w.callers {
					known++
					err := a.do(ctx, object)
					refused := apierrors.IsForbidden(err) || err == errUnseen //nolint:errorlint // itself
					if want := !may(caller, path, a.verb, of); refused != want {
						t.Errorf("%s: %s %s of %s: refused %v, want %v (%v)", caller, a.verb, path, of, refused, want, err)
					}
				}
			}
		}
	}
	if known < 3000 {
		t.Errorf("only %d questions were asked", known)
	}
}

// A list or watch that is not narrowed is refused, except for providers, of which a worker sees those it uses.
func TestWorkersNarrowTheirLists(t *testing.T) {
	w := newWorld(t)
	me := w.callers["worker of mine"]
	for path, st := range w.Storage {
		if l, ok := st.(rest.Lister); ok {
			list, err := l.List(coretest.WithPath(me, path), &internalversion.ListOptions{})
			switch {
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "a worker may not do this"):
				for name := range w.objects["tasks"] { // no selector makes it readable
					if _, err := l.List(coretest.WithPath(me, path), w.selecting(path, name)); !apierrors.IsForbidden(err) {
						t.Errorf("%s of %s: %v", path, name, err)
					}
				}
			case path == "providers":
				if n := meta.LenList(list); err != nil || n != 1 {
					t.Errorf("providers: %d, %v", n, err)
				}
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "narrow the request by"):
				t.Errorf("list of %s: %v", path, err)
			}
		}
		if l, ok := st.(rest.Watcher); ok {
			if _, err := l.Watch(coretest.WithPath(me, path), &internalversion.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("watch of %s: %v", path, err)
			}
		}
	}
}

// If a task names a provider by its type, the worker sees that provider and no other.
func TestProvidersOfAType(t *testing.T) {
	w := newWorld(t)
	w.MustApply("providers", withHead("kind: Provider\nspec: {type: anthropic, secretRef: {name: s}}", "claude"))
	typed := w.mustTask("typed", "{type: ai, prompt: p, ai: {provider: anthropic}}")
	list, err := w.Storage["providers"].(rest.Lister).List(coretest.WithPath(w.worker(typed), "providers"), &internalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l := list.(*v1alpha1.ProviderList); len(l.Items) != 1 || l.Items[0].Name != "claude" || l.ResourceVersion == "" {
		t.Errorf("the worker sees %v", l.Items)
	}
}

// coordinates lets an agent delegate.
func coordinates(t *testing.T, s *server, agent string) {
	t.Helper()
	if _, err := s.Update(s.User(), "agents", agent, func(o runtime.Object) {
		o.(*v1alpha1.Agent).Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: true, MaxDepth: new(int32(3)), MaxTasks: new(int32(200)), MaxConcurrentChildren: new(int32(5)), AllowedAgents: []v1alpha1.NamespacedReference{{Name: v1alpha1.AnyAgent}}}
	}); err != nil {
		t.Fatal(err)
	}
}

// A worker may create only tasks that its own task controls.
func TestWorkersMakeChildren(t *testing.T) {
	w := newWorld(t)
	me := w.callers["worker of mine"]
	child := func(owner *v1alpha1.Task) error {
		o := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-", Namespace: "default"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
		if owner != nil {
			o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		}
		obj, err := w.Decode(runtime.EncodeOrDie(w.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), o))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Create(me, "tasks", obj)
		return err
	}
	if err := child(w.Task("mine")); err != nil {
		t.Error(err)
	}
	for _, owner := range []*v1alpha1.Task{nil, w.Task("other")} {
		if err := child(owner); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
}

// A task's content can no longer be written after its stream is closed, except by controllers.
func TestContentClosesWithTheStream(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: container}`)
	me := s.worker(a)
	if _, err := s.CreateNamed(s.As(controllers, nil), "tasks/events", "a", ev(v1alpha1.EventTaskSucceeded)); err != nil {
		t.Fatal(err)
	}
	for _, terminal := range []bool{false, true} {
		if terminal {
			s.SetPhase("a", v1alpha1.TaskSucceeded)
		}
		for path, sub := range map[string]string{"tasks/result": "", "tasks/log": "", "tasks/artifacts": "f"} {
			for name, of := range map[string]struct {
				ctx  context.Context
				code int
			}{"worker": {me, 403}, "somebody": {s.User(), 409}, "controller": {s.As(controllers, nil), 200}} {
				got := s.Call(of.ctx, path, "a", sub, "POST", []byte("late")).Code
				if got == http.StatusCreated || got == http.StatusNoContent {
					got = http.StatusOK
				}
				if got != of.code {
					t.Errorf("%s of %s, terminal %v: %d, want %d", path, name, terminal, got, of.code)
				}
			}
		}
		_, err := s.CreateNamed(me, "tasks/events", "a", ev(v1alpha1.EventModelMessage))
		checkStatus(t, err, 409, "stream is closed")
	}
}

// Only controllers may write events that workers may not write.
func TestEventsOfOthers(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: container}`)
	for _, typ := range []v1alpha1.EventType{
		v1alpha1.EventTaskCreated, v1alpha1.EventTaskPhaseChanged, v1alpha1.EventTaskJobCreated, v1alpha1.EventTaskStarted,
		v1alpha1.EventPlanUpdated, v1alpha1.EventTaskForkRequested, v1alpha1.EventTaskForkCreated, v1alpha1.EventGatewayDeliveryCompleted,
	} {
		for _, by := range []context.Context{s.worker(a), s.User()} {
			_, err := s.CreateNamed(by, "tasks/events", "a", ev(typ))
			checkStatus(t, err, 403, string(typ)+" events must use controller-owned paths")
			e := ev(typ)
			e.TaskName = "a"
			_, err = s.Create(by, "executionevents", e)
			checkStatus(t, err, 403, string(typ)+" events must use controller-owned paths")
		}
		if _, err := s.CreateNamed(s.As(controllers, nil), "tasks/events", "a", ev(typ)); err != nil {
			t.Errorf("controller: %v", err)
		}
	}
	many := &v1alpha1.ExecutionEventList{Items: []v1alpha1.ExecutionEvent{*ev(v1alpha1.EventModelMessage), *ev(v1alpha1.EventPlanUpdated)}}
	_, err := s.CreateNamed(s.worker(a), "tasks/events", "a", many)
	checkStatus(t, err, 403, "PlanUpdated")
}
