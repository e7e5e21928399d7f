// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/publisher"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/workspace"
)

// delivered ends a publication whose commit a read of the branch has seen, or goes on to its pull request.
func (s publish) delivered(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.Workspace.CreatePR {
		return step.ErrDone // the next reconcile asks for it, when this is stored
	}
	return s.settleDelivered(ctx, t, v1alpha1.TaskSucceeded, "", "")
}

// settleDelivered ends a task whose branch was seen. A phase other than Succeeded has a reason, and more says what else there is to say.
func (s publish) settleDelivered(ctx context.Context, t *v1alpha1.Task, phase v1alpha1.TaskPhase, reason, more string) error {
	d := t.Status.Delivery
	state, message := v1alpha1.DeliveryVerifiedExact, fmt.Sprintf("published as branch %s at %s", d.Branch, d.VerifiedRemoteSHA)
	if d.SupersedingRemoteSHA != "" {
		state = v1alpha1.DeliveryDeliveredSuperseded
		message += ", which has gone on to " + d.SupersedingRemoteSHA + " since"
	}
	if more != "" {
		message += "; " + more
	}
	return s.settle(ctx, t, state, outcome{phase: phase, reason: reason, message: message})
}

// pull sees to it that there is one pull request for the branch, which was seen to have the commit.
func (s publish) pull(ctx context.Context, t *v1alpha1.Task) error {
	d, w := t.Status.Delivery, t.Spec.Workspace
	access, failed, err := s.access(ctx, t, plan.ForForge)
	if err != nil {
		return err
	}
	if failed != "" {
		return s.notOpened(ctx, t, failed)
	}
	answer, err := s.publisher.Do(s.named(t, workspace.Pull, workspace.PullOrder{
		Access: access, Key: d.PublicationID, Generation: t.Generation, Head: d.Branch, HeadSHA: cmp.Or(d.SupersedingRemoteSHA, d.VerifiedRemoteSHA), Base: w.PRBaseBranch,
		Title: pullTitle(t), Body: pullBody(t), Since: recordedAt(t),
	}))
	refused, ok := errors.AsType[*workspace.FailedError](err)
	switch {
	case errors.Is(err, publisher.ErrWorking):
		return step.ErrDone // its end wakes the task
	case ok && refused.Temporary && s.lately.patient(t.UID, s.now()):
		return step.Wait{After: publishRetry, Reason: refused.Message}
	case ok:
		return s.notOpened(ctx, t, refused.Message)
	case err != nil:
		return fmt.Errorf("pull request: %w", err)
	}
	p := answer.Pulled
	if p.Outcome == pullHeadMoved && p.Receipt == nil && s.lately.patient(t.UID, s.now()) { // somebody moved the branch since it was seen
		d.VerifiedRemoteSHA, d.SupersedingRemoteSHA = "", ""
		return step.Wait{After: publishRetry, Reason: "the branch was moved before its pull request was made"}
	}
	s.lately.reached(t.UID)
	if d.PRReceipt = p.Receipt; p.Receipt == nil {
		return s.notOpened(ctx, t, "the code host says "+p.Outcome)
	}
	if err := s.evidence.record(ctx, t, p); err != nil {
		return err
	}
	name := cmp.Or(p.Receipt.URL, fmt.Sprintf("number %d", p.Receipt.Number))
	switch p.Outcome {
	case pullOpen, pullMerged, pullHeadMoved: // what others did to it later is theirs
		return s.settleDelivered(ctx, t, v1alpha1.TaskSucceeded, "", "pull request "+name)
	}
	return s.notOpened(ctx, t, fmt.Sprintf("pull request %s is %s", name, p.Outcome))
}

// Outcomes of a pull request that matter here; package codehost/pullrequest has all.
const (
	pullOpen      = "Open"
	pullMerged    = "Merged"
	pullHeadMoved = "HeadMoved"
	// pullAdopted is how a pull request of somebody else came to be the task's.
	pullAdopted = "Adopted"
)

// notOpened ends a task whose branch is there and whose pull request is not.
func (s publish) notOpened(ctx context.Context, t *v1alpha1.Task, why string) error {
	return s.settleDelivered(ctx, t, v1alpha1.TaskFailed, v1alpha1.ReasonPullRequestNotOpened, "there is no open pull request: "+why)
}

// maxTitle is the longest title of a pull request, in characters.
const maxTitle = 256

// secretText returns the field of a text that people wrote for the pull request and that looks like a secret; empty if none does.
func secretText(t *v1alpha1.Task) string {
	w := t.Spec.Workspace
	if !w.CreatePR {
		return ""
	}
	if _, secret := redact.Output(w.PRTitle); secret {
		return "spec.workspace.prTitle"
	}
	if _, secret := redact.Output(w.PRBody); secret {
		return "spec.workspace.prBody"
	}
	return ""
}

// pullTitle returns the title of the pull request: that of the task, or the first line of its prompt, or its name.
func pullTitle(t *v1alpha1.Task) string {
	if title := t.Spec.Workspace.PRTitle; title != "" {
		return oneLine(title)
	}
	if line := firstLine(t, oneLine); line != "" {
		if _, secret := redact.Output(line); !secret {
			return line
		}
	}
	return generatedTitle(t)
}

// oneLine returns a text without control characters and spaces at its ends, of at most maxTitle characters.
func oneLine(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
	if utf8.RuneCountInString(text) > maxTitle {
		text = strings.TrimSpace(string([]rune(text)[:maxTitle]))
	}
	return text
}

// pullBody returns the text of the pull request.
func pullBody(t *v1alpha1.Task) string {
	if body := t.Spec.Workspace.PRBody; body != "" {
		return body
	}
	d := t.Status.Delivery
	return fmt.Sprintf("Task `%s/%s` changed the repository, beginning with commit %s.", t.Namespace, t.Name, d.StartingSHA)
}
