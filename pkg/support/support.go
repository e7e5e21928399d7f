// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package support lists what the API's types can express but this version does not implement. Admission,
// controllers and status all use this list, so that nothing that was asked for is silently ignored: a gap that
// would change what a run does is refused, any other one causes a warning. A row is removed when its feature is
// implemented.
//
// A task with a refused gap is rejected when it is written, and again when it is about to start (reason NotSupported), because it may
// have been stored by an older server, or its agent may have changed. Warnings are sent with the answer of the API, and kubectl prints
// them. What a run leaves out (AbsentTool, UnknownTool, Local) is also in the event with which the run begins.
//
// Three things are refused elsewhere: tasks of type agent that cannot run by package plan, spec.execution.workspace by the rules of tasks in the
// registry, and tools that cannot work by package tool, when a task that uses them is to start. The file docs/not-built.md tells
// users all of this.
package support

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Gap is one setting of an object that this version does not implement.
type Gap struct {
	// Path is the field, such as spec.workspace.
	Path string
	// Refused is set if a run without it would not be the run that was asked for.
	Refused bool
	// Text says what is missing and what to use instead.
	Text string
}

// String returns the path and the text, for people.
func (g Gap) String() string { return g.Path + ": " + g.Text }

// Refused returns the gaps in the list that are refused.
func Refused(gaps []Gap) []Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g Gap) bool { return !g.Refused })
}

// Warnings returns, as text, the gaps in the list that only cause a warning.
func Warnings(gaps []Gap) []string {
	var list []string
	for _, g := range gaps {
		if !g.Refused {
			list = append(list, g.String())
		}
	}
	return list
}

// row is one entry in the table of a type.
type row[T any] struct {
	path    string
	refused bool
	asked   func(T) bool
	text    string
}

func gaps[T any](of T, table []row[T]) []Gap {
	var found []Gap
	for _, r := range table {
		if r.asked(of) {
			found = append(found, Gap{Path: r.path, Refused: r.refused, Text: "not supported yet: " + r.text})
		}
	}
	return found
}

// Task returns the gaps of a task, regardless of its agent. Whether a task of type agent can run depends on where it is to start, so
// package plan judges the fields of that type then, and they are not listed.
func Task(t *v1alpha1.Task) []Gap {
	return gaps(t, []row[*v1alpha1.Task]{
		{
			"spec.workspace", true, func(t *v1alpha1.Task) bool {
				return hasWorkspace(t) && !t.Spec.Workspace.Writes() && publishes(t)
			},
			"without intent write nothing is published; set spec.workspace.intent to write, or leave out the fields about publications: those that begin with publication, push, pr and reject, " +
				"createPR, expectedRemoteSHA, maxChangedFiles, allowedPaths and denyRepositoryControlPaths; and forgeCredentialRef, unless the task is of type ai, whose tools use it",
		},
		{
			"spec.workspace.createPR", false, func(t *v1alpha1.Task) bool { return hasWorkspace(t) && idlePR(t.Spec.Workspace) },
			"the fields that begin with pr ask for no pull request; set createPR, too",
		},
		{
			"spec.workspace.sourceRepository", true, func(t *v1alpha1.Task) bool {
				return hasWorkspace(t) && (t.Spec.Workspace.SourceRepository != nil || t.Spec.Workspace.PublicationRepository != nil)
			},
			"no code host is asked for the identity of a repository; leave it and publicationRepository out",
		},
	})
}

// hasWorkspace reports whether a task of another type than agent has a workspace.
func hasWorkspace(t *v1alpha1.Task) bool {
	return t.Spec.Workspace != nil && t.Spec.Type != v1alpha1.TaskTypeAgent
}

// idlePR reports whether a workspace says how a pull request is to be, and asks for none.
func idlePR(w *v1alpha1.TaskWorkspace) bool {
	return w.Writes() && !w.CreatePR && (w.PRBaseBranch != "" || w.PRTitle != "" || w.PRBody != "")
}

// publishes reports whether anything in the workspace of a task is about a publication, other than its intent. The tools of a task of type
// ai use the credential for pull requests without a publication, too.
func publishes(t *v1alpha1.Task) bool {
	w := *t.Spec.Workspace
	read := v1alpha1.TaskWorkspace{
		Intent: w.Intent, GitRepo: w.GitRepo, SourceRepository: w.SourceRepository, Branch: w.Branch, Ref: w.Ref, SubPath: w.SubPath, ReadCredentialRef: w.ReadCredentialRef,
	}
	if t.Spec.Type == v1alpha1.TaskTypeAI {
		read.ForgeCredentialRef = w.ForgeCredentialRef
	}
	return !equality.Semantic.DeepEqual(w, read)
}

// Agent returns the gaps of an agent. A refused gap refuses the tasks of the agent, not the agent itself: it may
// be written now and used later.
func Agent(s *v1alpha1.AgentSpec) []Gap {
	return gaps(s, []row[*v1alpha1.AgentSpec]{
		{
			"spec.session.ttl", false, func(s *v1alpha1.AgentSpec) bool { return s.Session != nil && s.Session.TTL != nil },
			"idle sessions are kept until they are deleted",
		},
	})
}

// AgentOf returns the gaps that a task of type ai has because of its agent: the refused gaps of the agent.
func AgentOf(t *v1alpha1.Task, s *v1alpha1.AgentSpec) []Gap {
	if t.Spec.Type != v1alpha1.TaskTypeAI {
		return nil
	}
	return Refused(Agent(s))
}

// Tool returns the gaps of a tool.
func Tool(s *v1alpha1.ToolSpec) []Gap {
	return gaps(s, []row[*v1alpha1.ToolSpec]{
		{
			"spec.mcp.workspace", false, func(s *v1alpha1.ToolSpec) bool { return s.MCP != nil && s.MCP.Workspace != nil },
			"tasks that use this tool fail; use mcp.remote or http",
		},
		{
			"spec.mcp.substrateActor", false, func(s *v1alpha1.ToolSpec) bool { return s.MCP != nil && s.MCP.SubstrateActor != nil },
			"tasks that use this tool fail; use mcp.remote or http",
		},
		{
			"spec.http.outboundAccessPolicyRef", false, func(s *v1alpha1.ToolSpec) bool { return s.HTTP != nil && s.HTTP.OutboundAccessPolicyRef != nil },
			"tasks that use this tool fail; use authSecretRef",
		},
		{"spec.brokeredToolClass", false, func(s *v1alpha1.ToolSpec) bool { return s.BrokeredToolClass != "" }, "no runtime brokers tools; name the tools that need approval in the Agent"},
	})
}

// RuntimePool returns the gaps of a runtime pool.
func RuntimePool(s *v1alpha1.RuntimePoolSpec) []Gap {
	return gaps(s, []row[*v1alpha1.RuntimePoolSpec]{
		{
			"spec.desiredReplicas", false, func(s *v1alpha1.RuntimePoolSpec) bool { return s.DesiredReplicas != nil && *s.DesiredReplicas > 0 },
			"each task starts a session of its own, and none is kept warm",
		},
		{"spec.executionWorkspace", false, func(s *v1alpha1.RuntimePoolSpec) bool { return s.ExecutionWorkspace != nil }, "tasks work in the sandbox of their own run"},
		{
			"spec.coldStartTimeoutSeconds", false,
			func(s *v1alpha1.RuntimePoolSpec) bool {
				return s.ColdStartTimeoutSeconds != nil && *s.ColdStartTimeoutSeconds != defaultColdStart
			},
			"--start-timeout of the controller limits how long a run may take to start",
		},
	})
}

// defaultColdStart is the default of coldStartTimeoutSeconds, which people may not have written.
const defaultColdStart = 120

// AgentRuntime returns the gaps of an agent runtime.
func AgentRuntime(s *v1alpha1.AgentRuntimeSpec) []Gap {
	return gaps(s, []row[*v1alpha1.AgentRuntimeSpec]{
		{"spec.contractVersion", false, func(s *v1alpha1.AgentRuntimeSpec) bool { return s.ContractVersion == v1alpha1.HarnessV1 }, "runtimes of platform.harness.v1 are not asked and get no tasks; register one of platform.harness.v2"},
	})
}

// Local returns warnings about settings of placement and resources that runs on the server's own machine ignore,
// because only a cluster can honour them. Paths begin with spec, the path of the object's spec.
func Local(spec string, p v1alpha1.ExecutionPlacement, r *corev1.ResourceRequirements) []string {
	var list []string
	add := func(set bool, path, text string) {
		if set {
			list = append(list, spec+"."+path+": has no effect: "+text)
		}
	}
	const place = "runs of this server are processes of its own machine"
	add(p.RuntimeClassName != nil, "execution.runtimeClassName", place)
	add(len(p.NodeSelector) > 0, "execution.nodeSelector", place)
	add(len(p.Tolerations) > 0, "execution.tolerations", place)
	add(p.Affinity != nil, "execution.affinity", place)
	if r == nil {
		return list
	}
	add(len(r.Requests) > 0, "resources.requests", "nothing is reserved on this machine")
	add(len(r.Claims) > 0, "resources.claims", place)
	var names []string
	for name := range r.Limits {
		if name != corev1.ResourceMemory {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		add(true, fmt.Sprintf("resources.limits[%s]", name), "of limits only memory is enforced on this machine")
	}
	return list
}

// AbsentTool returns the warning for a built-in tool that runs leave out, because they can do without it and the place lacks something.
func AbsentTool(name, lacks string) string {
	return fmt.Sprintf("tools: %s cannot work here, and runs leave it out: %s", name, lacks)
}

// RuntimeTool returns the warning for a tool of an Agent with a runtime.
func RuntimeTool(name string) string {
	return fmt.Sprintf("tools: coding agents do not get %s; they have tools of their own", name)
}

// UnknownTool returns the warning for a name that is neither that of a built-in tool nor that of a Tool or of a ConnectorProvider's tool.
func UnknownTool(path, name string) string {
	return fmt.Sprintf("%s: no tool %q is built in, exists as a Tool or is declared by a ConnectorProvider of this namespace; runs leave it out", path, name)
}

// RepositoryMonitor returns the gaps of a repository monitor.
func RepositoryMonitor(s *v1alpha1.RepositoryMonitorSpec) []Gap {
	return gaps(s, []row[*v1alpha1.RepositoryMonitorSpec]{
		{"spec.repair.maxValidationRetries", false, func(s *v1alpha1.RepositoryMonitorSpec) bool { return s.Repair.MaxValidationRetries != nil }, "repairs are counted by maxRepairsPerPR and maxRepairsPerHead alone"},
		{"spec.repair.maxReviewFixRetries", false, func(s *v1alpha1.RepositoryMonitorSpec) bool { return s.Repair.MaxReviewFixRetries != nil }, "repairs are counted by maxRepairsPerPR and maxRepairsPerHead alone"},
		{"spec.review.publish.inline.onlyChangedLines", false, func(s *v1alpha1.RepositoryMonitorSpec) bool {
			only := s.Review.Publish.Inline.OnlyChangedLines
			return only != nil && !*only
		}, "code hosts take no comments on lines beyond the diff"},
		{"spec.validation.commands", false, func(s *v1alpha1.RepositoryMonitorSpec) bool {
			return len(s.Validation.Commands) > 0 && s.Validation.Image == ""
		}, "agents are told the commands, and nothing else runs them; with spec.validation.image reviewers get run_validation"},
	})
}
