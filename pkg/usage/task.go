// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Labels and annotations by which a task names the request on a code host that it belongs to. Controllers write them;
// whoever may create tasks in a namespace can write them, too, so they count within that namespace only.
const (
	annotationPRMonitor = v1alpha1.LabelPrefix + "pr-monitor-name"
	// Labels shorten repositories; the annotation of the same name has it in full.
	nameRepository = v1alpha1.AnnotationGitHubRepository
	labelTarget    = v1alpha1.LabelPrefix + "github-target"
	nameNumber     = v1alpha1.LabelPrefix + "github-number"
)

// TaskOf returns what is recorded about a task. The namespace's UID and the times of recording are left to the ledger.
func TaskOf(t *v1alpha1.Task) *Task {
	out := &Task{
		Namespace: t.Namespace, UID: string(t.UID), Name: t.Name, RootTaskUID: string(t.UID), Type: string(t.Spec.Type), Phase: string(t.Status.Phase),
		Role: t.Labels[v1alpha1.LabelAgentRole], Agent: t.Status.AgentName, Labels: t.Labels, ForkSourceUID: t.Annotations[v1alpha1.AnnotationForkSourceUID],
		RequestedBy: t.Annotations[v1alpha1.AnnotationRequestedBy], GatewayOwner: t.Annotations[v1alpha1.AnnotationGatewayName], CreatedAt: t.CreationTimestamp.UTC().Truncate(time.Second), // as it is stored
		StartedAt: timeOf(t.Status.StartTime), EndedAt: timeOf(t.Status.CompletionTime),
	}
	if out.Agent == "" && t.Spec.AgentRef != nil {
		out.Agent = t.Spec.AgentRef.Name
	}
	if t.Spec.SessionRef != nil {
		out.SessionName = t.Spec.SessionRef.Name
	}
	if d := t.Status.Delegation; d != nil {
		out.ParentTaskUID, out.RootTaskUID = string(d.ParentUID), string(d.RootUID)
	}
	if h := t.Status.HarnessRuntime; h != nil {
		out.Runtime = h.Type
		if h.RuntimeRef != nil {
			out.Runtime = h.RuntimeRef.Name
		}
	}
	out.Work = workOf(t)
	if w := t.Spec.Workspace; w != nil {
		out.Repository = repository(w.GitRepo)
	}
	out.Repository = cmp.Or(out.Work.Repository, out.Repository)
	if out.Work.Kind == KindPullRequest {
		out.PRNumber = out.Work.Number
	}
	return out
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func workOf(t *v1alpha1.Task) Work {
	named := func(name string) string { return cmp.Or(t.Annotations[name], t.Labels[name]) }
	w := Work{
		Repository:  repository(named(nameRepository)),
		MonitorName: cmp.Or(t.Annotations[v1alpha1.AnnotationRepositoryMonitorName], t.Annotations[annotationPRMonitor], t.Labels[v1alpha1.LabelRepositoryMonitor]),
		MonitorUID:  t.Annotations[v1alpha1.AnnotationRepositoryMonitorUID],
	}
	switch cmp.Or(t.Annotations[v1alpha1.AnnotationMonitorItemKind], t.Labels[labelTarget]) {
	case "issue", "issues":
		w.Kind = KindIssue
	case "pull_request", "pullrequest", "pull-request", "pr":
		w.Kind = KindPullRequest
	}
	if n, err := strconv.ParseInt(cmp.Or(t.Annotations[v1alpha1.AnnotationMonitorItemNumber], named(nameNumber)), 10, 64); err == nil && n > 0 {
		w.Number = n
	}
	if w.Number == 0 || w.Kind == "" {
		w.Kind, w.Number = "", 0 // half a name identifies nothing
	}
	return w
}

// repository returns OWNER/REPOSITORY in lower case from that form or from a URL; empty if it is neither.
func repository(s string) string {
	s = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(s, "/"), ".git"))
	if _, rest, ok := strings.Cut(s, "://"); ok {
		_, s, _ = strings.Cut(rest, "/")
	}
	if owner, name, ok := strings.Cut(s, "/"); !ok || owner == "" || name == "" || strings.ContainsAny(s, " :@?#\x00") {
		return ""
	}
	return s
}
