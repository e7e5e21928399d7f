// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/publisher"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/test/corpus"
)

const (
	startCommit = "1111111111111111111111111111111111111111"
	newCommit   = "2222222222222222222222222222222222222222"
	otherCommit = "3333333333333333333333333333333333333333"
	newTree     = "4444444444444444444444444444444444444444"
)

// server is a publisher whose steps answer at once, as a git server of a certain kind makes them.
type server struct {
	dir    string
	head   string
	pushes int
	// look and push replace the answers; nil for a server that does what it says.
	look func(published string) (*workspace.Seen, error)
	push func(n int) (*workspace.Pushed, error)
	// pull answers the n-th request for a pull request, and asked is the last one.
	pull  func(n int) (*workspace.Pulled, error)
	pulls int
	asked workspace.PullOrder
}

func (s *server) Folder(types.UID) (string, error) { return s.dir, nil }
func (s *server) Forget(types.UID) error           { return nil }
func (s *server) OnEnd(func(types.NamespacedName)) {}

func (s *server) Do(p publisher.Step) (*workspace.Answer, error) {
	switch o := p.Order.(type) {
	case workspace.LookOrder:
		seen := &workspace.Seen{Head: s.head, Forward: s.head == startCommit, Contains: s.head == newCommit, Tree: newTree}
		if s.look != nil {
			var err error
			if seen, err = s.look(o.Published); err != nil {
				return nil, err
			}
		}
		return &workspace.Answer{Seen: seen}, nil
	case workspace.BuildOrder:
		return &workspace.Answer{Built: &workspace.Built{Commit: newCommit, Tree: newTree, Files: 1}}, os.WriteFile(o.Pack, nil, 0o600)
	case workspace.PushOrder:
		s.pushes++
		if s.push != nil {
			pushed, err := s.push(s.pushes)
			return &workspace.Answer{Pushed: pushed}, err
		}
		s.head = o.New
		return &workspace.Answer{Pushed: &workspace.Pushed{Outcome: workspace.PushAccepted}}, nil
	}
	if o, ok := p.Order.(workspace.PullOrder); ok && s.pull != nil {
		s.pulls++
		s.asked = o
		pulled, err := s.pull(s.pulls)
		return &workspace.Answer{Pulled: pulled}, err
	}
	return nil, fmt.Errorf("step %s", p.Name)
}

func finalizing(t *v1alpha1.Task) {
	isStarted(t)
	ref := &v1alpha1.WorkspaceCredentialReference{Name: "s", Key: "token"}
	t.Spec.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "https://git.example/r", Intent: v1alpha1.WorkspaceWrite, PublicationReadCredentialRef: ref, PublicationCredentialRef: ref}
	t.Status.Phase = v1alpha1.TaskFinalizing
	t.Status.Execution = &v1alpha1.TaskExecutionStatus{PublicationCredentialResourceVersion: "7", PublicationReadCredentialResourceVersion: "7"}
	t.Status.ExecutionOutcome = &v1alpha1.TaskExecutionOutcome{Phase: v1alpha1.TaskSucceeded, Attempt: 1, RecordedAt: &metav1.Time{Time: noon()}}
	t.Status.Delivery = &v1alpha1.TaskDelivery{State: v1alpha1.DeliveryValidating, StartingSHA: startCommit, Branch: "b"}
}

func asksForPull(t *v1alpha1.Task) {
	t.Spec.Workspace.CreatePR, t.Spec.Workspace.ForgeCredentialRef = true, &v1alpha1.WorkspaceCredentialReference{Name: "s", Key: "token"}
	t.Status.Execution.ForgeCredentialResourceVersion = "7"
}

func pulled(outcome string) func(int) (*workspace.Pulled, error) {
	return func(int) (*workspace.Pulled, error) {
		return &workspace.Pulled{Outcome: outcome, How: "Created", Receipt: &v1alpha1.PullRequestReceipt{ID: "70", Number: 7, URL: "https://git.example/r/pulls/7"}}, nil
	}
}

// TestPullTexts: a title is one line of at most 256 characters and never what looks like a secret, wherever it comes from.
func TestPullTexts(t *testing.T) {
	secret := corpus.Canaries()[0].Text
	for _, tc := range []struct{ title, prompt, want string }{
		{"", "\n  Mend the test\tnow \nplease", "Mend the test now"},
		{"Mine", "x", "Mine"},
		{"", " \n\t\n", "Changes by task n/t"},
		{"", "deploy with " + secret, "Changes by task n/t"},
		{"", strings.Repeat("ä", 300), strings.Repeat("ä", 256)},
	} {
		task := task(finalizing)
		task.Spec.Workspace.PRTitle, task.Spec.Prompt = tc.title, tc.prompt
		if got := pullTitle(task); got != tc.want {
			t.Errorf("%q, %q: title %q, want %q", tc.title, tc.prompt, got, tc.want)
		}
	}
}

// TestPublish follows publications to their end with servers that are away, lie, or answer late, on a clock that each wait moves.
func TestPublish(t *testing.T) {
	away := &workspace.FailedError{Reason: v1alpha1.ReasonRepositoryUnreachable, Message: "away", Temporary: true}
	refused := &workspace.FailedError{Reason: v1alpha1.ReasonCredentialBlocked, Message: "refused"}
	for _, tc := range []struct {
		name   string
		server server
		change func(*v1alpha1.Task)
		secret string // version of the Secret
		state  v1alpha1.TaskDeliveryState
		phase  v1alpha1.TaskPhase
		reason string
		pushes int
		waited time.Duration // at least
		says   string
	}{
		{name: "honest", state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded, pushes: 1},
		{name: "honest, with a branch", server: server{head: startCommit}, change: func(t *v1alpha1.Task) { t.Spec.Workspace.PushBranch = "b" }, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded, pushes: 1},
		{name: "a branch of this name", server: server{head: startCommit}, state: v1alpha1.DeliveryConflict, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonDeliveryConflict, says: "exists already"},
		{
			name: "expected elsewhere", server: server{head: startCommit}, change: func(t *v1alpha1.Task) {
				t.Spec.Workspace.PushBranch, t.Spec.Workspace.ExpectedRemoteSHA = "b", otherCommit
			},
			state: v1alpha1.DeliveryConflict, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonDeliveryConflict, says: otherCommit,
		},
		{
			name: "says that it moved the branch, and did not", server: server{push: func(int) (*workspace.Pushed, error) { return &workspace.Pushed{Outcome: workspace.PushAccepted}, nil }},
			state: v1alpha1.DeliveryPublicationOutcomeUnknown, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPublicationOutcomeUnknown, pushes: 1, waited: publishPatience, says: "and said that it did",
		},
		{
			name: "never answers a push", server: server{push: func(int) (*workspace.Pushed, error) { return &workspace.Pushed{Outcome: workspace.PushLost}, nil }},
			state: v1alpha1.DeliveryPublicationOutcomeUnknown, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPublicationOutcomeUnknown, pushes: -1, waited: publishPatience, says: "gave no answer",
		},
		{
			name: "shows another tree", server: server{look: func(published string) (*workspace.Seen, error) {
				if published == "" {
					return &workspace.Seen{}, nil
				}
				return &workspace.Seen{Head: newCommit, Contains: true, Tree: otherCommit}, nil
			}}, state: v1alpha1.DeliveryPublicationOutcomeUnknown, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPublicationOutcomeUnknown, pushes: 1, says: "another tree",
		},
		{
			name: "away from the beginning", server: server{look: func(string) (*workspace.Seen, error) { return nil, away }},
			state: v1alpha1.DeliveryConflict, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonRepositoryUnreachable, waited: publishPatience, says: "nothing was published: away",
		},
		{
			name: "away after the push", server: server{look: func(published string) (*workspace.Seen, error) {
				if published == "" {
					return &workspace.Seen{}, nil
				}
				return nil, away
			}}, state: v1alpha1.DeliveryPublicationOutcomeUnknown, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPublicationOutcomeUnknown, pushes: 1, waited: publishPatience,
		},
		{name: "credential refused", server: server{look: func(string) (*workspace.Seen, error) { return nil, refused }}, state: v1alpha1.DeliveryCredentialBlocked, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonCredentialBlocked},
		{name: "push refused for the credential", server: server{push: func(int) (*workspace.Pushed, error) { return nil, refused }}, state: v1alpha1.DeliveryCredentialBlocked, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonCredentialBlocked, pushes: 1},
		{name: "another Secret", secret: "8", state: v1alpha1.DeliveryCredentialBlocked, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonCredentialBlocked, says: "was changed since"},
		{name: "cancelled before", change: cancelAsked, state: v1alpha1.DeliveryCancelledBeforePublish, phase: v1alpha1.TaskCancelled, reason: v1alpha1.ReasonCancelled},
		{
			name: "restarted while it publishes", change: func(t *v1alpha1.Task) {
				t.Status.Delivery.State, t.Status.Delivery.RemoteBeforeSHA, t.Status.Delivery.ExpectedCommitSHA, t.Status.Delivery.TreeSHA = v1alpha1.DeliveryPublishing, new(""), newCommit, newTree
				t.Status.Delivery.ArtifactDigest = workspace.Digest([]byte("delta"))
			}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded, pushes: 1,
		},
		{
			name: "cancelled too late", change: func(t *v1alpha1.Task) {
				cancelAsked(t)
				t.Status.Delivery.State, t.Status.Delivery.RemoteBeforeSHA, t.Status.Delivery.ExpectedCommitSHA, t.Status.Delivery.TreeSHA = v1alpha1.DeliveryVerifying, new(""), newCommit, newTree
			}, server: server{head: newCommit}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded,
		},
		{
			name: "with a pull request", change: asksForPull, server: server{pull: pulled("Open")}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded, pushes: 1,
			says: "pull request https://git.example/r/pulls/7",
		},
		{
			name: "with one that somebody closed", change: asksForPull, server: server{pull: pulled("Closed")}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskFailed,
			reason: v1alpha1.ReasonPullRequestNotOpened, pushes: 1, says: "is Closed",
		},
		{
			name: "code host away", change: asksForPull, server: server{pull: func(int) (*workspace.Pulled, error) { return nil, away }}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskFailed,
			reason: v1alpha1.ReasonPullRequestNotOpened, pushes: 1, waited: publishPatience, says: "there is no open pull request: away",
		},
		{
			name: "code host away for a moment", change: asksForPull, server: server{pull: func(n int) (*workspace.Pulled, error) {
				if n < 3 {
					return nil, away
				}
				return pulled("Open")(n)
			}}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded, pushes: 1, waited: 2 * publishRetry,
		},
		{
			name: "branch moved before its pull request", change: asksForPull, server: server{pull: func(n int) (*workspace.Pulled, error) {
				if n == 1 {
					return &workspace.Pulled{Outcome: "HeadMoved"}, nil
				}
				return pulled("Open")(n)
			}}, state: v1alpha1.DeliveryVerifiedExact, phase: v1alpha1.TaskSucceeded, pushes: 1, waited: publishRetry,
		},
		{
			name: "no branch to merge into", change: asksForPull, server: server{pull: func(int) (*workspace.Pulled, error) { return &workspace.Pulled{Outcome: "BaseMissing"}, nil }}, state: v1alpha1.DeliveryVerifiedExact,
			phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPullRequestNotOpened, pushes: 1, says: "BaseMissing",
		},
		{
			name: "a title that is a secret", change: func(t *v1alpha1.Task) {
				asksForPull(t)
				t.Spec.Workspace.PRTitle = "use " + corpus.Canaries()[0].Text
			}, state: v1alpha1.DeliveryConflict, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPublicationRefused, says: "spec.workspace.prTitle looks like",
		},
		{
			name: "another delta than before", change: func(t *v1alpha1.Task) {
				t.Status.Delivery.State, t.Status.Delivery.ArtifactDigest = v1alpha1.DeliveryPreparing, "sha256:other"
			}, state: v1alpha1.DeliveryConflict, phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonPublicationRefused,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now, log := noon(), &eventLog{}
			clock := func() time.Time { return now }
			tc.server.dir = t.TempDir()
			version := tc.secret
			if version == "" {
				version = "7"
			}
			s := publish{
				now: clock, publisher: &tc.server, append: log.append, end: log.finish, lately: newSightings(clock),
				delta: func(context.Context, *v1alpha1.Task) ([]byte, bool, error) { return []byte("delta"), true, nil },
				secret: func(_ context.Context, s plan.Secret) (string, plan.Secret, string, error) {
					return "token", s, version, nil
				},
				evidence: evidence{create: func(context.Context, *v1alpha1.UsageLink) error { return nil }},
			}
			task := task(finalizing)
			if tc.change != nil {
				tc.change(task)
			}
			for n := 0; task.Status.Phase == v1alpha1.TaskFinalizing; n++ {
				err := s.do(t.Context(), task)
				if w, ok := errors.AsType[step.Wait](err); ok {
					now = now.Add(w.After)
				} else if !errors.Is(err, step.ErrDone) {
					t.Fatal(err)
				}
				if n > 1000 {
					t.Fatalf("it never ends: %+v", task.Status.Delivery)
				}
			}
			d := task.Status.Delivery
			if d.State != tc.state || log.end.phase != tc.phase || log.end.reason != tc.reason || !strings.Contains(log.end.message, tc.says) {
				t.Errorf("%s, %+v; want %s, %s, %s, %q", d.State, log.end, tc.state, tc.phase, tc.reason, tc.says)
			}
			if tc.pushes >= 0 && tc.server.pushes != tc.pushes || now.Sub(noon()) < tc.waited || now.Sub(noon()) > tc.waited+time.Minute {
				t.Errorf("%d pushes after %s, want %d and %s", tc.server.pushes, now.Sub(noon()), tc.pushes, tc.waited)
			}
		})
	}
}
