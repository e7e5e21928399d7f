// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// TestExplain: each error of a runtime has the reason that says what to do, and another attempt is made if it may succeed.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		reason string
		again  bool
	}{
		"another instance":   {harness.Refuse(harness.WrongInstance, "x"), v1alpha1.ReasonRuntimeReplaced, true},
		"another profile":    {fmt.Errorf("%w: x", errReplaced), v1alpha1.ReasonRuntimeReplaced, true},
		"no such session":    {harness.Refuse(harness.NotFound, "x"), v1alpha1.ReasonRuntimeReplaced, true},
		"another generation": {harness.Refuse(harness.WrongGeneration, "x"), v1alpha1.ReasonRuntimeReplaced, true},
		"lease":              {fmt.Errorf("%w: x", errLease), v1alpha1.ReasonRuntimeLeaseLost, true},
		"lease not renewed":  {fmt.Errorf("%w: %w", errLease, harness.ErrUnreachable), v1alpha1.ReasonRuntimeLeaseLost, true},
		"lease refused":      {harness.Refuse(harness.LeaseLost, "x"), v1alpha1.ReasonRuntimeLeaseLost, true},
		"fenced":             {harness.Refuse(harness.SessionFenced, "x"), v1alpha1.ReasonRuntimeLeaseLost, true},
		"away":               {fmt.Errorf("%w: x", harness.ErrUnreachable), v1alpha1.ReasonRuntimeNotAvailable, true},
		"full":               {harness.Refuse(harness.LimitReached, "x"), v1alpha1.ReasonRuntimeNotAvailable, true},
		"draining":           {harness.Refuse(harness.Draining, "x"), v1alpha1.ReasonRuntimeNotAvailable, true},
		"stale":              {&harness.Error{Code: 409, Reason: harness.StaleEpoch, ControllerEpoch: 9}, v1alpha1.ReasonRuntimeNotAvailable, false},
		"token":              {harness.Refuse(harness.Unauthenticated, "x"), v1alpha1.ReasonRuntimeNotAvailable, false},
		"not implemented":    {harness.Refuse(harness.BadRequest, "x"), v1alpha1.ReasonRuntimeNotAvailable, false},
		"protocol":           {fmt.Errorf("%w: x", harness.ErrProtocol), v1alpha1.ReasonProtocolViolated, false},
		"known":              {runner.Fail(v1alpha1.ReasonWorkspaceRefused, "x"), v1alpha1.ReasonWorkspaceRefused, false},
		"unknown":            {errors.New("x"), v1alpha1.ReasonInternalError, false},
	} {
		got, ok := errors.AsType[*runner.Error](explain(tc.err))
		if !ok || got.Reason != tc.reason || (got.Exit == runspec.ExitUnavailable) != tc.again {
			t.Errorf("%s: %+v, want %s", name, got, tc.reason)
		}
	}
	long, _ := errors.AsType[*runner.Error](explain(errors.New(strings.Repeat("x", 1<<20))))
	if explain(nil) != nil || len(long.Error()) > 2*maxSaid {
		t.Error("no error is one, or a long one is repeated whole")
	}
}

// TestCall: what an event of a call leaves out stays as it was.
func TestCall(t *testing.T) {
	t.Parallel()
	tr := newTranslator(t.Context(), &run{})
	tr.call(&harness.Call{ID: "c", Title: "Edit a", Kind: "edit", Tool: "Edit", Arguments: []byte(`{"path":"a"}`), Paths: []string{"a"}}, true, false)
	c := tr.call(&harness.Call{ID: "c", ResultBytes: 7, Diffs: []harness.Diff{{Path: "a", Bytes: 3}}, Failed: true}, true, true)
	if c.Title != "Edit a" || c.Kind != "edit" || c.Name() != "Edit" || string(c.Arguments) != `{"path":"a"}` || c.ArgumentBytes != 12 || len(c.Paths) != 1 ||
		c.ResultBytes != 7 || len(c.Diffs) != 1 || !c.Running || !c.Ended || !c.Failed {
		t.Errorf("%+v", c)
	}
	if c := tr.call(&harness.Call{ID: "d", ArgumentBytes: 9}, false, false); c.Kind != "other" || c.Running || c.ArgumentBytes != 9 {
		t.Errorf("%+v", c)
	}
}

// TestSettled: a runtime may withdraw a question or deny it, and allow only what the platform has allowed.
func TestSettled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answered, settled harness.Decision
		wrong             bool
	}{
		"allowed":           {harness.Allow, harness.Allow, false},
		"denied":            {harness.Deny, harness.Deny, false},
		"withdrawn":         {"", harness.Withdrawn, false},
		"denied by itself":  {"", harness.Deny, false},
		"allowed by itself": {"", harness.Allow, true},
		"allowed after all": {harness.Deny, harness.Allow, true},
	} {
		tr := newTranslator(t.Context(), &run{})
		ctx, withdraw := context.WithCancel(t.Context())
		tr.questions["q"] = &question{withdraw: withdraw, answer: tc.answered}
		err := tr.settled(&harness.Permission{ID: "q", Decision: tc.settled})
		if errors.Is(err, harness.ErrProtocol) != tc.wrong || !tc.wrong && ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
		withdraw()
	}
}
