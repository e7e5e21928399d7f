// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

var (
	_ executor.ToolHost  = &Executor{}
	_ executor.AgentHost = &Executor{}
)

// LacksAgent implements executor.AgentHost from the options alone. The worker looks for the program in the image.
func (e *Executor) LacksAgent(t v1alpha1.AgentRuntimeType) string { return e.opts.AgentImages.Lacks(t) }

// AgentImage implements executor.AgentHost.
func (e *Executor) AgentImage(t v1alpha1.AgentRuntimeType) (string, error) {
	if why := e.LacksAgent(t); why != "" {
		return "", errors.New(why)
	}
	return e.opts.AgentImages.Of(t), nil
}

// Lacks implements executor.ToolHost from the options alone: the worker's own image has no interpreter, and nothing
// is known about other images.
func (e *Executor) Lacks(tool string) string {
	switch {
	case tool == builtin.CodeExec.Name && e.opts.AIImage == e.opts.WorkerImage:
		return "runs use the worker's own image, which has no interpreter; name one that has with the controller's --ai-worker-image"
	case tool == builtin.WebSearch.Name && e.opts.SearchURL == "":
		return "no search service is set up; name one with the controller's --search-url"
	default:
		return ""
	}
}
