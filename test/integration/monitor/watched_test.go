// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// watched is a server with a monitor of the repository on a code host, which delivers to it what happens.
type watched struct {
	*standalone.Platform
	t     *testing.T
	host  codeHost
	clock *quickclock.Ahead

	mu sync.Mutex
	// seen are the deliveries that the test has looked at.
	seen map[string]bool
}

// newWatched starts a server whose model follows a script. Its agents are planner, reviewer, and coder, which has a runtime.
func newWatched(t *testing.T, h codeHost, script string, configure ...func(*standalone.Options)) *watched {
	t.Helper()
	x := &watched{t: t, host: h, clock: &quickclock.Ahead{}, seen: map[string]bool{}}
	program, agent := kit.Bin(t, "platform-workspace"), kit.Bin(t, "scriptedagent")
	x.Platform, _ = standalone.WithModel(t, script, append([]func(*standalone.Options){standalone.OnAPort(t), func(o *standalone.Options) {
		o.WorkspaceBinary, o.RepositoryAllow, o.AgentPrograms, o.Webhook.Secret = program, []string{h.address()}, []string{"codex=" + agent}, hookSecret
		o.MergeGate, o.Clock = true, x.clock
	}}, configure...)...)
	h.hook(t, x.Server)
	for _, role := range roles() {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: role}, StringData: map[string]string{"token": h.token(role)}}
		kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	}
	model := v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}
	reviewer := *model.DeepCopy()
	reviewer.Tools = []v1alpha1.AgentTool{{Name: "code_exec"}}
	for name, spec := range map[string]v1alpha1.AgentSpec{"planner": model, "reviewer": reviewer, "coder": {Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}}} {
		kit.Must[*v1alpha1.Agent](t)(x.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
	}
	return x
}

// end stops the server while the code host can still answer it.
func (x *watched) end() {
	if x.t.Failed() && x.Server != nil {
		x.t.Logf("commands %s, work %s, written %s, %s", x.commands(), x.done(), x.written(), x.shown("monitoritems"))
	}
	x.Stop(x.t)
}

// watch makes the monitor shop, whose commands are labels, and waits until it has looked at the repository once.
func (x *watched) watch(change func(*v1alpha1.RepositoryMonitorSpec)) {
	x.t.Helper()
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	spec := v1alpha1.RepositoryMonitorSpec{
		RepoURL: x.host.location(), Provider: x.host.provider(), Schedule: "0 0 1 1 *",
		ReadCredentialRef: ref(readRole), PublicationReadCredentialRef: ref(lookRole), PublicationCredentialRef: ref(pushRole), ForgeCredentialRef: ref(forgeRole),
		Triggers: v1alpha1.MonitorTriggers{GitHub: v1alpha1.MonitorHostTriggers{Labels: v1alpha1.MonitorLabelTriggers{Enabled: true}}},
		Agents:   v1alpha1.MonitorAgents{Reviewer: &v1alpha1.LocalReference{Name: "reviewer"}},
	}
	change(&spec)
	kit.Must[*v1alpha1.RepositoryMonitor](x.t)(x.API().RepositoryMonitors("default").Create(x.t.Context(), &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: spec}, metav1.CreateOptions{}))
	kit.Await(x.t, "the first look is over", func() bool {
		m := kit.Must[*v1alpha1.RepositoryMonitor](x.t)(x.API().RepositoryMonitors("default").Get(x.t.Context(), "shop", metav1.GetOptions{}))
		// Deliveries are told to no monitor whose own credential has not read the repository.
		return x.overOnes() == 1 && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionRepositoryAccessible)
	})
}

// overOnes returns how many runs there are, and -1 if one of them is not over.
func (x *watched) overOnes() int {
	l := kit.Must[*v1alpha1.MonitorRunList](x.t)(x.API().MonitorRuns("default").List(x.t.Context(), metav1.ListOptions{}))
	for i := range l.Items {
		if l.Items[i].Status.State == v1alpha1.MonitorRunFailed {
			x.t.Fatalf("run %s: %s", l.Items[i].Name, l.Items[i].Status.Message)
		}
		if l.Items[i].Status.State != v1alpha1.MonitorRunSucceeded {
			return -1
		}
	}
	return len(l.Items)
}

// look has the monitor look at the repository, and reports whether it will.
func (x *watched) look() bool {
	return x.API().RESTClient().Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/repositorymonitors/shop/runs").SetHeader("Content-Type", "application/json").
		Body([]byte(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"MonitorRunRequest"}`)).Do(x.t.Context()).Error() == nil
}

// delivered returns a delivery that fits, once it is decided, and not one that was returned before.
func (x *watched) delivered(what string, fits func(*v1alpha1.CodeHostDelivery) bool) (found *v1alpha1.CodeHostDelivery) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	kit.Await(x.t, "the delivery that "+what, func() bool {
		l := kit.Must[*v1alpha1.CodeHostDeliveryList](x.t)(x.API().CodeHostDeliveries("default").List(x.t.Context(), metav1.ListOptions{}))
		i := slices.IndexFunc(l.Items, func(d v1alpha1.CodeHostDelivery) bool {
			return !x.seen[d.Name] && d.Status.State != v1alpha1.DeliveryReceived && fits(&d)
		})
		if i >= 0 {
			found = &l.Items[i]
		}
		return i >= 0
	})
	x.seen[found.Name] = true
	return found
}

// about reports whether a delivery says that something happened to the labels of an issue or pull request, which now has a label or not.
// Gitea says no more than that.
func about(d *v1alpha1.CodeHostDelivery, number int64, label string, has bool) bool {
	return d.Spec.Number == number && strings.Contains(d.Spec.Action, "label") && slices.Contains(d.Spec.AllLabels, label) == has
}

// label has somebody set a label, and returns the delivery.
func (x *watched) label(number int64, label, by string) *v1alpha1.CodeHostDelivery {
	x.t.Helper()
	x.host.label(x.t, number, label, by)
	return x.delivered("says that "+label+" was set", func(d *v1alpha1.CodeHostDelivery) bool {
		return about(d, number, label, true) && d.Spec.Sender == by && d.Spec.Action != "unlabeled"
	})
}

// unlabel has somebody remove a label.
func (x *watched) unlabel(number int64, label, by string) {
	x.t.Helper()
	x.host.unlabel(x.t, number, label, by)
	x.delivered("says that "+label+" was removed", func(d *v1alpha1.CodeHostDelivery) bool {
		return about(d, number, label, false) && d.Spec.Sender == by
	})
}

// command gives a command by a label, and waits until it is over.
func (x *watched) command(number int64, label, by string) *v1alpha1.MonitorCommand {
	x.t.Helper()
	d := x.label(number, label, by)
	if len(d.Status.Commands) != 1 {
		x.t.Fatalf("%s by %s: %+v, %+v", label, by, d.Spec, d.Status)
	}
	_, name, _ := strings.Cut(d.Status.Commands[0], "/")
	var c *v1alpha1.MonitorCommand
	kit.Await(x.t, "the command of "+by+", "+label, func() bool {
		c = kit.Must[*v1alpha1.MonitorCommand](x.t)(x.API().MonitorCommands("default").Get(x.t.Context(), name, metav1.GetOptions{}))
		return c.Status.State != v1alpha1.MonitorCommandAccepted && c.Status.State != v1alpha1.MonitorCommandProcessed
	})
	return c
}

func (x *watched) item(name string) v1alpha1.MonitorItemStatus {
	i, err := x.API().MonitorItems("default").Get(x.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return v1alpha1.MonitorItemStatus{}
	}
	return i.Status
}

func (x *watched) works() []v1alpha1.MonitorWorkAction {
	return kit.Must[*v1alpha1.MonitorWorkActionList](x.t)(x.API().MonitorWorkActions("default").List(x.t.Context(), metav1.ListOptions{})).Items
}

// begun reports whether work of a kind has its task.
func (x *watched) begun(what v1alpha1.MonitorIntent) bool {
	return slices.ContainsFunc(x.works(), func(a v1alpha1.MonitorWorkAction) bool {
		return a.Spec.DesiredAction == what && a.Status.TaskName != ""
	})
}

// awaitReview waits until a head of pull request 1 has a verdict.
func (x *watched) awaitReview(head string, want v1alpha1.MonitorVerdict) *v1alpha1.MonitorItemReview {
	x.t.Helper()
	var r *v1alpha1.MonitorItemReview
	kit.Await(x.t, "the review of "+head, func() bool {
		r = x.item("shop.pr-1").Review
		return r != nil && r.HeadSHA == head && r.Verdict != ""
	})
	if r.Verdict != want {
		x.t.Fatalf("%+v", r)
	}
	return r
}

// counted counts things by their names.
func counted[T any](all []T, name func(*T) string) string {
	counts := map[string]int{}
	for i := range all {
		counts[strings.TrimSpace(name(&all[i]))]++
	}
	return fmt.Sprint(counts)
}

// commands counts the commands by what they are and how they ended.
func (x *watched) commands() string {
	return counted(kit.Must[*v1alpha1.MonitorCommandList](x.t)(x.API().MonitorCommands("default").List(x.t.Context(), metav1.ListOptions{})).Items, func(c *v1alpha1.MonitorCommand) string {
		return fmt.Sprintf("%s %s %s", c.Spec.Intent, c.Status.State, c.Status.Reason)
	})
}

// written counts what was to be written on the code host by what it is and how it ended.
func (x *watched) written() string {
	return counted(kit.Must[*v1alpha1.MonitorMutationList](x.t)(x.API().MonitorMutations("default").List(x.t.Context(), metav1.ListOptions{})).Items, func(m *v1alpha1.MonitorMutation) string {
		return fmt.Sprintf("%s %s", m.Spec.Operation, m.Status.State)
	})
}

// done counts the work by what it is and how it ended.
func (x *watched) done() string {
	return counted(x.works(), func(a *v1alpha1.MonitorWorkAction) string {
		return fmt.Sprintf("%s %s %s", a.Spec.DesiredAction, a.Status.State, a.Status.Reason)
	})
}

// shown returns what kubectl get shows of a kind: its rows, without the columns for the time.
func (x *watched) shown(resource string) string {
	x.t.Helper()
	raw := kit.Must[[]byte](x.t)(x.API().RESTClient().Get().Namespace("default").Resource(resource).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(x.t.Context()).Raw())
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		x.t.Fatal(err)
	}
	var out strings.Builder
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			if c := table.ColumnDefinitions[i]; c.Priority == 0 && c.Name != "Age" {
				_, _ = fmt.Fprintf(&out, "%v ", cell)
			}
		}
		_, _ = out.WriteString("\n")
	}
	return out.String()
}
