// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codehost provides the tools for pull requests and issues.
//
// A worker does not speak with code hosts. It sends each call to the API server, on tasks/codehost of the run's own task. The server
// decides whether the task may make the call, carries it out with a credential that the worker does not have, and answers with what the
// model reads. What is done here is what takes longer than a request: check_pull_request_ci and auto_merge_pull_request wait by
// repeating their call.
//
// A call is sent with the id that the model gave to it, so that the server makes it once although the request is repeated. A review or
// a merge is sent with the commit that the run has seen as the head of the pull request (toolkit.Heads), so that the server refuses it
// if others have pushed since.
package codehost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// The built-in tools for pull requests.
var (
	CreateBuiltin    = toolkit.Tool{Of: builtin.CreatePullRequest, New: of(builtin.CreatePullRequest, (*serverTool).plain)}
	ListBuiltin      = toolkit.Tool{Of: builtin.ListPullRequests, New: of(builtin.ListPullRequests, (*serverTool).plain)}
	MarkerBuiltin    = toolkit.Tool{Of: builtin.CheckPRReviewMarker, New: of(builtin.CheckPRReviewMarker, (*serverTool).plain)}
	ReviewBuiltin    = toolkit.Tool{Of: builtin.ReviewPullRequest, New: of(builtin.ReviewPullRequest, (*serverTool).review)}
	CheckBuiltin     = toolkit.Tool{Of: builtin.CheckPullRequestCI, New: of(builtin.CheckPullRequestCI, (*serverTool).check)}
	PostBuiltin      = toolkit.Tool{Of: builtin.PostReviewComment, New: of(builtin.PostReviewComment, (*serverTool).pinned)}
	MergeBuiltin     = toolkit.Tool{Of: builtin.MergePullRequest, New: of(builtin.MergePullRequest, (*serverTool).pinned)}
	MonitorBuiltin   = toolkit.Tool{Of: builtin.CreatePRMonitor, New: of(builtin.CreatePRMonitor, (*serverTool).plain)}
	AutoMergeBuiltin = toolkit.Tool{Of: builtin.AutoMergePullRequest, New: of(builtin.AutoMergePullRequest, (*serverTool).autoMerge)}
)

// The built-in tools for issues.
var (
	IssuesBuiltin  = toolkit.Tool{Of: builtin.ListIssues, New: of(builtin.ListIssues, (*serverTool).plain)}
	IssueBuiltin   = toolkit.Tool{Of: builtin.GetIssue, New: of(builtin.GetIssue, (*serverTool).plain)}
	CommentBuiltin = toolkit.Tool{Of: builtin.CommentOnIssue, New: of(builtin.CommentOnIssue, (*serverTool).plain)}
)

// of returns the New of a tool. call carries out a call of it.
func of(t *builtin.Tool, call func(*serverTool, context.Context, json.RawMessage) (any, error)) func(toolkit.Given) (tool.Tool, error) {
	return func(g toolkit.Given) (tool.Tool, error) {
		if g.API == nil || g.Task == nil {
			return nil, errors.New("the run has no task")
		}
		heads := g.Heads
		if heads == nil {
			heads = &toolkit.Heads{}
		}
		return &serverTool{of: t, call: call, api: g.API, task: g.Task, clock: g.Clock, heads: heads}, nil
	}
}

// serverTool is a tool whose calls the server carries out.
type serverTool struct {
	of *builtin.Tool
	// call carries out a call.
	call  func(*serverTool, context.Context, json.RawMessage) (any, error)
	api   *client.API
	task  *v1alpha1.Task
	clock clock.Clock
	heads *toolkit.Heads
}

var _ tool.Tool = (*serverTool)(nil)

// Definition describes the tool.
func (t *serverTool) Definition() tool.Definition { return t.of.Definition() }

// Call carries out a call.
func (t *serverTool) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	return t.call(t, ctx, arguments)
}

// plain makes a call for which the worker adds nothing.
func (t *serverTool) plain(ctx context.Context, arguments json.RawMessage) (any, error) {
	return t.once(ctx, request(ctx, t.of, arguments))
}

// review reads a pull request. The model then knows its head.
func (t *serverTool) review(ctx context.Context, arguments json.RawMessage) (any, error) {
	p, err := decode[pull](arguments)
	if err != nil {
		return nil, err
	}
	found, err := t.once(ctx, request(ctx, t.of, arguments))
	if err != nil {
		return nil, err
	}
	if r, err := read(found); err == nil {
		t.heads.Read(p.Repository, p.Number, r.text("head_sha"))
	}
	return found, nil
}

// pinned makes a call that is for the head that the run has seen.
func (t *serverTool) pinned(ctx context.Context, arguments json.RawMessage) (any, error) {
	p, err := decode[pull](arguments)
	if err != nil {
		return nil, err
	}
	c := request(ctx, t.of, arguments)
	c.HeadSHA = t.heads.Of(p.Repository, p.Number)
	return t.once(ctx, c)
}

// pull is the pull request that a call is about.
type pull struct {
	Number     int64  `json:"pr_number"`
	Repository string `json:"repo_url"`
}

// decode reads the arguments of a call, which fit the tool's schema.
func decode[A any](arguments json.RawMessage) (a A, err error) {
	if json.Unmarshal(arguments, &a) != nil {
		return a, tool.InvalidArguments("the arguments are not an object of the tool's parameters")
	}
	return a, nil
}

// maxCallID is how long the id of a call may be in a request.
const maxCallID = 256

// request returns the request for a call. Its arguments are those that the model wrote.
func request(ctx context.Context, of *builtin.Tool, arguments json.RawMessage) *v1alpha1.TaskCodeHostCall {
	id := tool.CallID(ctx)
	switch {
	case id == "":
		id = string(uuid.NewUUID())
	case len(id) > maxCallID: // some gateways put what they have to remember into it
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return &v1alpha1.TaskCodeHostCall{ToolName: of.Name, CallID: id, Arguments: apiextensionsv1.JSON{Raw: arguments}}
}
