// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/attendance"
)

func container(change ...func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	return of(v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}, change)
}

func ai(change ...func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	return of(v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "p", AgentRef: &v1alpha1.NamespacedReference{Name: "a"}, AI: &v1alpha1.TaskAI{}}, change)
}

func coding(change ...func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	return of(v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAgent, Prompt: "p", AgentRef: &v1alpha1.NamespacedReference{Name: "a"},
		Workspace: &v1alpha1.TaskWorkspace{GitRepo: "https://h/r.git"},
	}, change)
}

func of(spec v1alpha1.TaskSpec, change []func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	spec.TimeZone = "UTC"
	for _, f := range change {
		f(&spec)
	}
	return &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t", Namespace: "default"}, Spec: spec}
}

// check compares errors with "path: part of the text", in order; none for "".
func check(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	if len(want) == 1 && want[0] == "" {
		want = nil
	}
	if len(errs) != len(want) {
		t.Errorf("%d errors, want %d: %v", len(errs), len(want), errs.ToAggregate())
		return
	}
	for i, err := range errs {
		path, text, _ := strings.Cut(want[i], ": ")
		if err.Field != path || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, want[i])
		}
	}
}

type spec = v1alpha1.TaskSpec

func workspace(f func(*v1alpha1.TaskWorkspace)) func(*spec) {
	return func(s *spec) { f(s.Workspace) }
}

func TestValidate(t *testing.T) {
	duration := v1alpha1.DurationOf
	write := func(w *v1alpha1.TaskWorkspace) { w.Intent = v1alpha1.WorkspaceWrite }
	for _, tc := range []struct {
		name string
		task *v1alpha1.Task
		want string
	}{
		{"container", container(), ""},
		{"ai", ai(), ""},
		{"agent", coding(), ""},

		{"image of ai", ai(func(s *spec) { s.Image = "x" }), "spec.image: is for tasks of type container, not for ai"},
		{"args of agent", coding(func(s *spec) { s.Args = []string{"x"} }), "spec.args: is for tasks of type container"},
		{"ai of container", container(func(s *spec) { s.AI = &v1alpha1.TaskAI{} }), "spec.ai: is for tasks of type ai"},
		{"agentRuntime of ai", ai(func(s *spec) { s.AgentRuntime = &v1alpha1.TaskAgentRuntime{} }), "spec.agentRuntime: is for tasks of type agent"},
		{"agent without agentRef", coding(func(s *spec) { s.AgentRef = nil }), "spec.agentRef: a task of type agent needs it"},
		{"blank prompt", ai(func(s *spec) { s.Prompt = " \n" }), "spec.prompt: a task of type ai needs it"},
		{"prompt in ai", ai(func(s *spec) { s.Prompt, s.AI.Prompt = "", "p" }), ""},
		{"prompt in session", ai(func(s *spec) {
			s.Prompt, s.SessionRef = "", &v1alpha1.TaskSessionReference{Name: "s", PromptIncluded: true}
		}), ""},

		{"requestedBy", container(func(s *spec) { s.RequestedBy = &v1alpha1.TaskRequester{} }), "spec.requestedBy: is set by the server"},
		{"transaction", container(func(s *spec) { s.Transaction = &v1alpha1.TaskTransaction{} }), "spec.transaction: is set by the server"},

		{"timeout", container(func(s *spec) { s.Timeout = duration(time.Second) }), ""},
		{"no timeout", container(func(s *spec) { s.Timeout = duration(0) }), "spec.timeout: must be greater than zero"},
		{"backoff", container(func(s *spec) { s.RetryPolicy = &v1alpha1.RetryPolicy{BackoffMultiplier: new(0.5)} }), "spec.retryPolicy.backoffMultiplier: must be greater than or equal to 1"},
		{"negative delay", container(func(s *spec) { s.RetryPolicy = &v1alpha1.RetryPolicy{InitialDelay: duration(-1)} }), "spec.retryPolicy.initialDelay: must be greater than zero"},

		{"schedule", container(func(s *spec) { s.Schedule, s.TimeZone = "*/5 * * * 1-5", "Europe/Berlin" }), ""},
		{"descriptor", container(func(s *spec) { s.Schedule = "@hourly" }), ""},
		{"six fields", container(func(s *spec) { s.Schedule = "0 0 * * * *" }), "spec.schedule: five cron fields"},
		{"zone in schedule", container(func(s *spec) { s.Schedule = "TZ=UTC * * * * *" }), "spec.schedule: belongs in timeZone"},
		{"unknown zone", container(func(s *spec) { s.TimeZone = "Mars/Olympus" }), "spec.timeZone: must be an IANA time zone name"},
		{"local zone", container(func(s *spec) { s.TimeZone = "Local" }), "spec.timeZone: must be an IANA time zone name"},

		{"webhook", container(func(s *spec) { s.WebhookURL = "https://h/p?token=x" }), ""},
		{"webhook file", container(func(s *spec) { s.WebhookURL = "file:///etc/passwd" }), "spec.webhookURL: must be an absolute URL"},
		{"webhook with password", container(func(s *spec) { s.WebhookURL = "https://u:p@h/" }), "spec.webhookURL: must not contain credentials"},

		{"env", container(func(s *spec) { s.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }), ""},
		{"env without name", container(func(s *spec) { s.Env = []corev1.EnvVar{{Value: "b"}} }), "spec.env[0].name: Required"},
		{"env name", container(func(s *spec) { s.Env = []corev1.EnvVar{{Name: "A=B"}} }), "spec.env[0].name: "},
		{"env twice", container(func(s *spec) {
			s.Env = []corev1.EnvVar{{Name: "A", Value: "x", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}
		}), "spec.env[0].valueFrom: cannot be set together with value"},
		{"env from nothing", container(func(s *spec) { s.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}} }), "spec.env[0].valueFrom: exactly one source"},
		{"env from no key", container(func(s *spec) {
			s.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}}
		}), "spec.env[0].valueFrom.secretKeyRef: name and key must be set"},

		{"own secret", container(func(s *spec) { s.SecretRef = &v1alpha1.NamespacedReference{Name: "s", Namespace: "default"} }), ""},
		{"secret elsewhere", container(func(s *spec) { s.SecretRef = &v1alpha1.NamespacedReference{Name: "s", Namespace: "kube-system"} }), "spec.secretRef.namespace: must be the task's own namespace"},
		{"prior task is itself", container(func(s *spec) { s.PriorTaskRef = &v1alpha1.NamespacedReference{Name: "t"} }), "spec.priorTaskRef.name: must be another task"},
		{"same name elsewhere", container(func(s *spec) { s.PriorTaskRef = &v1alpha1.NamespacedReference{Name: "t", Namespace: "b"} }), "spec.priorTaskRef.namespace: must be the task's own namespace, default"},
		{"workspace without a repository", container(func(s *spec) { s.Workspace = &v1alpha1.TaskWorkspace{Branch: "main"} }), "spec.workspace.gitRepo: a workspace needs a repository"},
		{"repository by ssh", container(func(s *spec) { s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "ssh://h/r"} }), "spec.workspace.gitRepo: not supported yet"},
		{"publication of a command", container(func(s *spec) { s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "https://h/r", PushBranch: "b"} }), "spec.workspace: not supported yet"},

		{"temperature", ai(func(s *spec) { s.AI.Temperature = new(2.5) }), "spec.ai.temperature: must be between 0 and 2"},
		{"provider twice", ai(func(s *spec) {
			s.AI.Provider, s.AI.ProviderRef = v1alpha1.ProviderOpenAI, &v1alpha1.NamespacedReference{Name: "p"}
		}), "spec.ai.provider: cannot be set together with providerRef"},
		{"azure without provider", ai(func(s *spec) { s.AI.Provider = v1alpha1.ProviderAzureOpenAI }), "spec.ai.provider: set providerRef"},
		{"empty skill", ai(func(s *spec) { s.AI.Skills = []v1alpha1.SkillReference{{Name: "a"}, {}} }), "spec.ai.skills[1]: one of name and configMapRef"},

		{"repository by ssh", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "ssh://git@h:22/r.git" })), ""},
		{"repository in git's short form", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "git@h:team/r.git" })), ""},
		{"repository with token", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "https://token@h/r" })), "spec.workspace.gitRepo: must not contain credentials"},
		{"repository with query", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "https://h/r?a=b" })), "spec.workspace.gitRepo: must not contain a query"},
		{"repository with fragment", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "https://h/r#x" })), "spec.workspace.gitRepo: must not contain a fragment"},
		{"repository as file", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "file:///r" })), "spec.workspace.gitRepo: must be an absolute URL"},
		{"repository as option", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "--upload-pack=x" })), "spec.workspace.gitRepo: must be an absolute URL"},
		{"publication by ssh", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.PublicationGitRepo = "ssh://h/r" })), "spec.workspace.publicationGitRepo: scheme http or https"},
		{"branch as option", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.Branch = "-f" })), "spec.workspace.branch: must not begin"},
		{"ref with dots", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.Ref = "a..b" })), "spec.workspace.ref: not a valid git ref"},
		{"ref", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.Ref = "refs/tags/v1.2" })), ""},
		{"subPath up", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.SubPath = "a/../.." })), "spec.workspace.subPath: must be a relative path"},
		{"absolute path", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.AllowedPaths = []string{"docs/", "/etc"} })), "spec.workspace.allowedPaths[1]: must be a relative path"},
		{"expected commit", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.ExpectedRemoteSHA = "abc" })), "spec.workspace.expectedRemoteSHA: hexadecimal"},
		{"blank title", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.PRTitle = "  " })), "spec.workspace.prTitle: white space"},
		{"reserved comment", coding(workspace(func(w *v1alpha1.TaskWorkspace) { w.PRBody = "a\n<!-- Platform: x -->" })), "spec.workspace.prBody: must not contain a comment"},
		{"pull request by a reader", coding(workspace(func(w *v1alpha1.TaskWorkspace) {
			w.CreatePR, w.ForgeCredentialRef = true, &v1alpha1.WorkspaceCredentialReference{Name: "f"}
		})), "spec.workspace.createPR: needs intent write"},
		{"pull request without credential", coding(workspace(write), workspace(func(w *v1alpha1.TaskWorkspace) { w.CreatePR = true })), "spec.workspace.forgeCredentialRef: createPR needs it"},
		{"policy of container", container(func(s *spec) { s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "https://h/r", RejectBinaryFiles: true} }), "spec.workspace.rejectBinaryFiles: not for tasks of type container"},
		{"sandbox", coding(func(s *spec) {
			s.Execution = &v1alpha1.TaskExecutionSpec{Workspace: &v1alpha1.ExecutionWorkspace{ClassRef: &v1alpha1.LocalReference{Name: "c"}}}
		}), "spec.execution.workspace: offers no external sandboxes"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, rules{}.validate(t.Context(), tc.task), tc.want) })
	}
}

func TestValidateExecutionWorkspace(t *testing.T) {
	class := &v1alpha1.LocalReference{Name: "c"}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, tc := range []struct {
		name string
		w    v1alpha1.ExecutionWorkspace
		want string
	}{
		{"class", v1alpha1.ExecutionWorkspace{ClassRef: class}, ""},
		{"provider", v1alpha1.ExecutionWorkspace{Enabled: true, Provider: v1alpha1.WorkspaceSubstrate}, ""},
		{"both", v1alpha1.ExecutionWorkspace{ClassRef: class, Enabled: true}, "spec.execution.workspace.classRef: cannot be set together"},
		{"neither", v1alpha1.ExecutionWorkspace{Provider: v1alpha1.WorkspaceSubstrate}, "spec.execution.workspace: must be set"},
		{"no session", v1alpha1.ExecutionWorkspace{ClassRef: class, ReusePolicy: v1alpha1.WorkspaceReuseSession}, "spec.execution.workspace.reusePolicy: needs sessionRef"},
		{"digest", v1alpha1.ExecutionWorkspace{ClassRef: class, RestoreFrom: &v1alpha1.ExecutionCheckpointReference{Digest: digest}}, ""},
		{"bad digest", v1alpha1.ExecutionWorkspace{ClassRef: class, RestoreFrom: &v1alpha1.ExecutionCheckpointReference{Digest: strings.ToUpper(digest)}}, "spec.execution.workspace.restoreFrom.digest: hexadecimal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			task := coding(func(s *spec) { s.Execution = &v1alpha1.TaskExecutionSpec{Workspace: &tc.w} })
			check(t, rules{executionWorkspaces: true}.validate(t.Context(), task), tc.want)
		})
	}
}

func TestNames(t *testing.T) {
	if msgs := validateName(strings.Repeat("a", 242), false); len(msgs) > 0 {
		t.Error(msgs)
	}
	if msgs := validateName(strings.Repeat("a", 243), false); len(msgs) == 0 {
		t.Error("243 bytes are accepted; the names of events would be too long")
	}
	task := container(func(s *spec) { s.Schedule = "@daily" })
	task.Name = strings.Repeat("a", 232)
	check(t, rules{}.validate(t.Context(), task), "spec.schedule: at most 231 bytes")
}

func TestValidateUpdate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		old    *v1alpha1.Task
		status v1alpha1.TaskStatus
		change func(*v1alpha1.Task)
		want   string
	}{
		{"prompt of ai", ai(), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) { t.Spec.Prompt = "q" }, ""},
		{"prompt of agent", coding(), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) { t.Spec.Prompt = "q" }, "spec.prompt: immutable"},
		{"timeout of agent", coding(), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) { t.Spec.Timeout = v1alpha1.DurationOf(1) }, "spec.timeout: immutable"},
		{"priority of agent", coding(), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) { t.Spec.Priority = ptr.To[int32](1) }, ""},
		{"explicit default intent", coding(), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) { t.Spec.Workspace.Intent = v1alpha1.WorkspaceRead }, "spec.workspace: immutable"},
		{"intent", container(func(s *spec) { s.Workspace = &v1alpha1.TaskWorkspace{} }), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) { t.Spec.Workspace.Intent = v1alpha1.WorkspaceWrite }, "spec.workspace.intent: immutable"},
		{"after the start", container(), v1alpha1.TaskStatus{Attempts: 1}, func(t *v1alpha1.Task) { t.Spec.Args = []string{"x"} }, "spec: the task has started"},
		{"suspend after the start", ai(), v1alpha1.TaskStatus{Attempts: 1}, func(t *v1alpha1.Task) { t.Spec.Suspend = true }, ""},
		{"labels after the start", ai(), v1alpha1.TaskStatus{Attempts: 1}, func(t *v1alpha1.Task) { t.Labels = map[string]string{"a": "b"} }, ""},
		{"bound", coding(), v1alpha1.TaskStatus{AgentExecutionBinding: &v1alpha1.TaskAgentExecutionBinding{AgentUID: types.UID("u")}}, func(t *v1alpha1.Task) { t.Spec.Priority = ptr.To[int32](1) }, "spec: the task has started"},
		{"schedule", container(func(s *spec) { s.Schedule = "@daily" }), v1alpha1.TaskStatus{Phase: v1alpha1.TaskScheduled}, func(t *v1alpha1.Task) { t.Spec.Schedule = "@hourly" }, ""},
		{"stamp", ai(), v1alpha1.TaskStatus{}, func(t *v1alpha1.Task) {
			t.Annotations = map[string]string{v1alpha1.AnnotationRequestedByStamp: "x"}
		}, "metadata.annotations[platform.ai/requested-by-stamp]: set by the server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.old.Status = tc.status
			changed := tc.old.DeepCopy()
			tc.change(changed)
			check(t, validateUpdate(t.Context(), changed, tc.old), tc.want)
		})
	}
}

func TestTerminalPhaseStays(t *testing.T) {
	r := &Resource{attendance: attendance.New(clock.RealClock{})}
	validateStatus := r.validateStatus
	old, now := ai(), ai()
	old.Status.Phase, now.Status.Phase = v1alpha1.TaskFailed, v1alpha1.TaskPending
	check(t, validateStatus(t.Context(), now, old), "status.phase: the task has ended")
	old.Status.Phase = v1alpha1.TaskRunning
	check(t, validateStatus(t.Context(), now, old), "")
}

func TestTokensColumn(t *testing.T) {
	for _, tc := range []struct {
		task  *v1alpha1.Task
		usage *v1alpha1.TaskUsage
		want  string
	}{
		{container(), nil, ""},
		{ai(), nil, "unavailable"},
		{ai(), &v1alpha1.TaskUsage{ModelRequests: 2, UnreportedRequests: 2}, "unavailable"},
		{ai(), &v1alpha1.TaskUsage{InputTokens: ptr.To[int64](0), OutputTokens: ptr.To[int64](5)}, "0/5"},
		{ai(), &v1alpha1.TaskUsage{InputTokens: ptr.To[int64](12), UnreportedRequests: 1}, "12/?+"},
	} {
		tc.task.Status.Usage = tc.usage
		if got := tokens(tc.task, tc.task.Status.Usage); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.usage, got, tc.want)
		}
	}
}
