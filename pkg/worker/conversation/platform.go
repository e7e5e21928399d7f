// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/asking"
	"github.com/platform-ai/platform/pkg/worker/runtools"
	"github.com/platform-ai/platform/pkg/worker/tool/mcp"
)

// maxPlatformCalls is how many calls of the platform's tools an agent makes at once. Others wait.
const maxPlatformCalls = 16

// platform are the platform's tools that an agent has. The worker carries out its calls, with everything that holds for those of a task
// of type ai: the policies, approvals bound to the arguments, and events. What the agent reports of such a call is recorded beside it, as
// of any other.
type platform struct {
	talk  *Talk
	tools *tool.Catalogue
	// names are those that the lists of the task and its Agent leave.
	names []string
	gated []string
	// making has a place for each call that is being made.
	making chan struct{}

	mu sync.Mutex
	// over is set when the agent has ended, and calls are those that are being made.
	over  bool
	made  int
	calls sync.WaitGroup
}

// Serve returns the server of the platform's tools for the agent; nil if it has none.
func (t *Talk) Serve(p *plan.Plan, tools *tool.Catalogue) http.Handler {
	t.platform.talk, t.platform.tools, t.platform.gated, t.platform.making = t, tools, p.Gated, make(chan struct{}, maxPlatformCalls)
	return t.platform.serve()
}

func (p *platform) serve() http.Handler {
	var offered []tool.Definition
	for _, d := range p.tools.Definitions() {
		if p.talk.rules.allows(d.Name) {
			offered, p.names = append(offered, d), append(p.names, d.Name)
		}
	}
	if len(offered) == 0 {
		return nil
	}
	return mcp.Serve(offered, p.call)
}

// begin takes a place for a call, and returns the call's number. It fails if the agent has ended, or ctx has.
func (p *platform) begin(ctx context.Context) (number int, ok bool) {
	select {
	case p.making <- struct{}{}:
	case <-ctx.Done():
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		<-p.making
		return 0, false
	}
	p.made++
	p.calls.Add(1)
	return p.made, true
}

// end gives the place of a call back.
func (p *platform) end() {
	<-p.making
	p.calls.Done()
}

// close waits for the calls that are being made. There are no others afterwards.
func (p *platform) close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.calls.Wait()
}

// call carries out a call of one of the tools.
func (p *platform) call(ctx context.Context, name, arguments string) tool.Result {
	stopped := tool.Failure(tool.Errorf(tool.TypeCancelled, "the call was given up"))
	number, ok := p.begin(ctx)
	if !ok {
		return stopped
	}
	defer p.end()
	t := p.talk
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.desk.life, cancel)() //nolint:contextcheck // the call ends with the agent, too
	ask := func(ctx context.Context, r agentloop.ApprovalRequest) (approval.Answer, error) {
		return t.desk.ask(ctx, t.desk.approvals.Place(), r)
	}
	result, err := agentloop.CallTool(ctx, agentloop.Config{
		Tools: p.tools, StoredFirst: runtools.StoredFirst(), Recorder: t, AgentName: t.agent, Clock: t.Clock,
		Gate: &agentloop.Gate{Names: p.gated, Ask: ask, Commit: t.Recorder.Commit},
		Judge: func(ctx context.Context, callID, name string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error) {
			return asking.Policies(ctx, t.Run, v1alpha1.ToolCallSpec{ToolName: name, CallID: callID, Arguments: &apiextensionsv1.JSON{Raw: arguments}})
		},
	}, llm.ToolCall{ID: "platform-" + strconv.Itoa(number), Name: name, Arguments: arguments})
	switch {
	case ctx.Err() != nil:
		return stopped
	case err != nil:
		t.Log.Line("%s: not called: %v", name, err)
		return tool.Failure(tool.Errorf(tool.TypeUnavailable, "it could not be asked whether the call may be made, so it was not made"))
	}
	return result
}

// offers reports whether a call that the agent asks a permission for is one of these tools, which is judged when it is made. Agents name
// such a tool after its server: mcp__platform__NAME, platform_NAME or platform/NAME.
func (p *platform) offers(c *acp.Call) bool {
	return c.Kind == acp.KindOther && slices.ContainsFunc([]string{c.Tool, c.Title}, func(name string) bool {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "mcp__"), mcp.ServerName)
		return ok && slices.Contains(p.names, strings.TrimLeft(rest, "_./ "))
	})
}
