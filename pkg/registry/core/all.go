// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core lists the resources of the group core.platform.ai.
package core

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/registry/core/agent"
	"github.com/platform-ai/platform/pkg/registry/core/approval"
	"github.com/platform-ai/platform/pkg/registry/core/executionevent"
	"github.com/platform-ai/platform/pkg/registry/core/provider"
	"github.com/platform-ai/platform/pkg/registry/core/session"
	"github.com/platform-ai/platform/pkg/registry/core/skill"
	"github.com/platform-ai/platform/pkg/registry/core/task"
	"github.com/platform-ai/platform/pkg/registry/core/tool"
	"github.com/platform-ai/platform/pkg/registry/resource"
	"github.com/platform-ai/platform/pkg/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// Options are what the resources need beside the object store. All are
// required, but ExecutionWorkspaces and Retention.
type Options struct {
	// Log keeps execution events.
	Log *eventlog.Log
	// Timelines answers pages and streams of the same events.
	Timelines *timeline.Server
	// Blobs keeps results, logs and artifacts of tasks.
	Blobs *blob.Store
	// Transcripts keeps messages of sessions.
	Transcripts *transcript.Store
	// Authorizer decides who may append controller-owned events: those who may
	// create executionevents/controlled.
	Authorizer authorizer.Authorizer
	// Clock is the server's clock.
	Clock clock.Clock
	// Loopback is the server's client of itself, with which it acts for its callers. Without one tasks cannot be forked.
	Loopback *rest.Config
	// ExecutionWorkspaces accepts tasks that ask for an external sandbox.
	ExecutionWorkspaces bool
	// Retention removes old events of ended tasks.
	Retention task.Retention
}

// All returns every resource of the group, in the order of discovery. The
// result is for one server.
func All(o Options) []resource.Resource {
	tasks := task.New(task.Options{
		Log: o.Log, Timelines: o.Timelines, Blobs: o.Blobs, Authorizer: o.Authorizer, Clock: o.Clock, Loopback: o.Loopback, ExecutionWorkspaces: o.ExecutionWorkspaces,
		Retention: o.Retention,
	})
	return []resource.Resource{
		tasks,
		agent.Definition(),
		provider.Definition(),
		tool.Definition(),
		skill.Definition(),
		session.New(session.Options{Timelines: o.Timelines, Transcripts: o.Transcripts, Task: tasks.Get, Clock: o.Clock}),
		executionevent.Definition(o.Log, tasks.Append),
		approval.Definition(approval.Options{Log: o.Log, Tasks: tasks, Clock: o.Clock}),
	}
}
