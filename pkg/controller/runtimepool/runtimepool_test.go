// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

const image = "localhost/codex@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// tally is a ledger of one pool that notes what it is told.
type tally struct {
	use     agentprogram.PoolUse
	unknown bool
	told    []string
	came    bool // a task has come since
}

func (l *tally) say(text string) { l.told = append(l.told, text) }

func (l *tally) Admit(_ types.NamespacedName, limits agentprogram.PoolLimits, open bool) {
	l.say(fmt.Sprintf("admit %d/%d %t", limits.MaxResidentSessions, limits.MaxRunningPrompts, open))
}
func (l *tally) Use(types.NamespacedName) (agentprogram.PoolUse, bool) { return l.use, !l.unknown }
func (l *tally) Retire(types.NamespacedName) bool                      { l.say("retire"); return !l.came }
func (l *tally) Keep(types.NamespacedName)                             { l.say("keep") }
func (l *tally) Gone(types.NamespacedName)                             {}
func (l *tally) OnChange(func(types.NamespacedName))                   {}

func start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func pool() *v1alpha1.RuntimePool {
	o := agentprogram.DefaultPoolOptions()
	p := o.Pool("team", "system:serviceaccount:team:agent", v1alpha1.RuntimeCodex, image)
	p.UID, p.Generation, p.CreationTimestamp = "p", 2, metav1.NewTime(start())
	return p
}

// TestReport: the status says where a pool is, whether it takes tasks and why, and a pool that nobody needs is deleted.
func TestReport(t *testing.T) {
	busy := agentprogram.PoolUse{Tasks: 5, RuntimePoolUse: v1alpha1.RuntimePoolUse{Resident: 3, Running: 2, Queued: 2}}
	with := func(change func(*agentprogram.PoolUse)) agentprogram.PoolUse {
		u := busy
		change(&u)
		return u
	}
	for name, tc := range map[string]struct {
		use     agentprogram.PoolUse
		unknown bool
		change  func(*v1alpha1.RuntimePool)
		// image is what is run now; empty for the pool's own, and lacks why nothing is.
		image, lacks string
		after        time.Duration
		came         bool
		removeErr    error
		want         string
		// status is lifecycle, admission and message, and conditions those that are there.
		status, conditions string
		told               string
		deletions          float64
	}{
		"at work": {
			use: busy, want: "done", told: "admit 10/4 true", status: "Serving Accepting 3 sessions, of which 2 work; 2 tasks wait",
			conditions: "AdmissionReady=True Accepting, QuotaReady=True Observed, SchedulingReady=True Observed, PodSecurityReady=True Observed, RolloutReady=True Observed",
		},
		"an administrator's capacity": {
			use: busy, want: "done", told: "admit 20/8 true", status: "Serving Accepting 3 sessions, of which 2 work; 2 tasks wait",
			change: func(p *v1alpha1.RuntimePool) {
				p.Spec.Capacity = &v1alpha1.RuntimePoolLimits{MaxResidentSessions: new(int32(20)), MaxRunningPrompts: new(int32(8))}
			},
		},
		"not known yet": {unknown: true, want: "done", told: "admit 10/4 true", status: "  "},
		"idle": {
			want: "wait 4m0s", after: 6 * time.Minute, told: "admit 10/4 true", status: "Stopped Accepting no task uses the pool now; the next one starts a session",
			conditions: "AdmissionReady=True Accepting, QuotaReady=Unknown NotChecked, SchedulingReady=Unknown NotChecked, PodSecurityReady=Unknown NotChecked, RolloutReady=Unknown NotChecked",
		},
		"idle since its last task": {
			use: agentprogram.PoolUse{Ended: agentprogram.PoolEnd{At: start().Add(time.Hour)}}, want: "wait 9m0s", after: 61 * time.Minute, told: "admit 10/4 true",
			status: "Stopped Accepting no task uses the pool now; the next one starts a session",
		},
		"idle for long":          {want: "done", after: 10 * time.Minute, told: "admit 10/4 true; retire; remove", status: "Stopped Accepting no task uses the pool now; the next one starts a session", deletions: 1},
		"a task comes meanwhile": {want: "done", after: 10 * time.Minute, came: true, told: "admit 10/4 true; retire", status: "Stopped Accepting no task uses the pool now; the next one starts a session"},
		"its deletion fails": {
			want: "moved", after: 10 * time.Minute, removeErr: errors.New("moved"), told: "admit 10/4 true; retire; remove; keep",
			status: "Stopped Accepting no task uses the pool now; the next one starts a session",
		},
		"another program": {
			use: busy, image: "localhost/codex@sha256:00", want: "done", told: "admit 10/4 false", status: "Draining Draining the program of the agent was changed: tasks that run go on here, and others use another pool",
			conditions: "AdmissionReady=False Draining, QuotaReady=True Observed, SchedulingReady=True Observed, PodSecurityReady=True Observed, RolloutReady=True Observed",
		},
		"another program, and empty": {
			image: "localhost/codex@sha256:00", want: "done", told: "admit 10/4 false; retire; remove", deletions: 1,
			status: "Draining Draining the program of the agent was changed: tasks that run go on here, and others use another pool",
		},
		"no program": {use: busy, lacks: "install it", want: "done", told: "admit 10/4 false", status: "Draining Draining install it"},
		"no program, and nothing runs": {
			use: agentprogram.PoolUse{Tasks: 1, RuntimePoolUse: v1alpha1.RuntimePoolUse{Queued: 1}}, lacks: "install it", want: "done", told: "admit 10/4 false", status: "Stopped Closed install it",
		},
		"no room in the quota": {
			use: with(func(u *agentprogram.PoolUse) {
				u.Waits = map[string]string{v1alpha1.ReasonQuotaExceeded: "exceeded quota: runs"}
			}),
			want: "done", told: "admit 10/4 true", status: "Serving Closed no further task is admitted while one waits: exceeded quota: runs",
			conditions: "AdmissionReady=False QuotaExceeded, QuotaReady=False QuotaExceeded, SchedulingReady=True Observed, PodSecurityReady=True Observed, RolloutReady=True Observed",
		},
		"no node": {
			use: with(func(u *agentprogram.PoolUse) {
				u.Waits = map[string]string{v1alpha1.ReasonUnschedulable: "none", v1alpha1.ReasonPodNotCreated: `violates PodSecurity "restricted"`}
			}),
			want: "done", told: "admit 10/4 true", status: "Serving Accepting 3 sessions, of which 2 work; 2 tasks wait",
			conditions: "AdmissionReady=True Accepting, QuotaReady=True Observed, SchedulingReady=False Unschedulable, PodSecurityReady=False PodNotCreated, RolloutReady=True Observed",
		},
		"the last one could not start": {
			use: with(func(u *agentprogram.PoolUse) {
				u.Ended = agentprogram.PoolEnd{At: start(), Reason: v1alpha1.ReasonRuntimeNotAvailable, Message: "the image lacks it"}
			}),
			want: "done", told: "admit 10/4 true", status: "Degraded Accepting the last task could not use the agent's program: the image lacks it",
			conditions: "AdmissionReady=True Accepting, QuotaReady=True Observed, SchedulingReady=True Observed, PodSecurityReady=True Observed, RolloutReady=False RuntimeNotAvailable",
		},
		"made by somebody": {
			change: func(p *v1alpha1.RuntimePool) { p.Name = "mine" }, want: "done",
			status:     "Stopped Closed the controller did not make this pool, so no task uses it; pools are made when tasks need them",
			conditions: "AdmissionReady=False NotManaged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &tally{use: tc.use, unknown: tc.unknown, came: tc.came}
			p := pool()
			if tc.change != nil {
				tc.change(p)
			}
			m, err := show(t.Context(), nil, l, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := controller{
				Options: Options{
					Ledger: l, Clock: clocktesting.NewFakePassiveClock(start().Add(tc.after)), IdleTTL: 10 * time.Minute, Pods: true,
					Lacks: func(v1alpha1.AgentRuntimeType) string { return tc.lacks },
					Image: func(v1alpha1.AgentRuntimeType) (string, error) {
						if tc.image != "" {
							return tc.image, nil
						}
						return image, nil
					},
				},
				deleted: m.deleted, remove: func(context.Context, *v1alpha1.RuntimePool) error { l.say("remove"); return tc.removeErr },
			}
			err = c.do(t.Context(), p)
			got := fmt.Sprint(err)
			if w, ok := errors.AsType[step.Wait](err); ok {
				got = "wait " + w.After.String()
			}
			if told := strings.Join(l.told, "; "); got != tc.want || told != tc.told {
				t.Errorf("%s, told %q; want %s, %q", got, told, tc.want, tc.told)
			}
			if status := fmt.Sprintf("%s %s %s", p.Status.Lifecycle, p.Status.Admission, p.Status.Message); status != tc.status {
				t.Errorf("status %q, want %q", status, tc.status)
			}
			var list []string
			for _, c := range p.Status.Conditions {
				list = append(list, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
			}
			if got := strings.Join(list, ", "); tc.conditions != "" && got != tc.conditions {
				t.Errorf("conditions %s\nwant %s", got, tc.conditions)
			}
			if n := testutil.ToFloat64(m.deleted.WithLabelValues(p.Namespace, p.Name)); n != tc.deletions {
				t.Errorf("%v deletions counted", n)
			}
		})
	}
}

// TestOnAMachine: where sessions are processes, nothing is said about Pods.
func TestOnAMachine(t *testing.T) {
	c := controller{Options: Options{Clock: clocktesting.NewFakePassiveClock(start())}}
	p := pool()
	c.report(p, &agentprogram.PoolUse{Tasks: 1}, true, "")
	var types []string
	for _, c := range p.Status.Conditions {
		types = append(types, c.Type)
	}
	if want := []string{v1alpha1.ConditionAdmissionReady, v1alpha1.ConditionQuotaReady, v1alpha1.ConditionRolloutReady}; !slices.Equal(types, want) {
		t.Errorf("conditions %v", types)
	}
	if meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionAdmissionReady) {
		t.Error("closed")
	}
}

// TestMetrics: the metrics are those of the pools that the controller made.
func TestMetrics(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p, foreign := pool(), pool()
	p.Status.Admission, foreign.Name = v1alpha1.PoolAdmissionAccepting, "mine"
	l := &tally{use: agentprogram.PoolUse{RuntimePoolUse: v1alpha1.RuntimePoolUse{Resident: 3, Running: 2, Queued: 7}}}
	r := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := show(ctx, r, l, fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, foreign).Build()); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, line := range []string{
		`admission_state{%s,state="Accepting"} 1`, `admission_state{%s,state="Ambiguous"} 0`, `admission_state{%s,state="Closed"} 0`, `admission_state{%s,state="Draining"} 0`,
		`desired_replicas{%s} 0`, `prompts_in_flight{%s} 2`, `queued_tasks{%s} 7`, `ready_replicas{%s} 1`, `sessions_active{%s} 3`,
	} {
		want += "platform_acp_runtime_pool_" + fmt.Sprintf(line, `namespace="team",runtime_pool="`+p.Name+`"`) + "\n"
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			got += fmt.Sprintf("%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue())
		}
	}
	if got != want {
		t.Errorf("metrics:\n%swant:\n%s", got, want)
	}
	cancel()
}
