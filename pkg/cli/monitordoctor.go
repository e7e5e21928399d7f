// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// health is what a check found.
type health string

const (
	healthy health = "ok"
	broken  health = "failed"
	unsure  health = "unknown" // you may not see it, or nobody has looked yet
)

// diagnosis is what platform monitor doctor prints.
type diagnosis struct {
	Monitor string                `json:"monitor"`
	Phase   v1alpha1.MonitorPhase `json:"phase,omitempty"`
	Checks  []checked             `json:"checks"`
	// Blocked are the open pull requests and issues that something keeps from going on.
	Blocked []obstacle `json:"blocked,omitempty"`
}

// checked is one check.
type checked struct {
	Check   string `json:"check"`
	Result  health `json:"result"`
	Message string `json:"message,omitempty"`
}

// obstacle is what keeps a pull request or an issue from going on.
type obstacle struct {
	TargetKind v1alpha1.MonitorTargetKind `json:"targetKind"`
	Number     int64                      `json:"number"`
	Reason     string                     `json:"reason"`
	Message    string                     `json:"message,omitempty"`
}

func monitorDoctor(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor MONITOR", Short: "Find out why a monitor does not do what it should", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(monitors),
		Long: "Find out why a monitor does not do what it should: whether it is ready, whether its Agents and Secrets exist, how its last run\n" +
			"ended, and what is blocked. Agents and Secrets are read as you, so what you may not read is not known. The exit code is 2 if a\ncheck failed.",
	}
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		m, err := c.RepositoryMonitors(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		d, err := diagnose(cmd.Context(), term, c, m)
		if err != nil {
			return err
		}
		if *f != asTable {
			err = term.write(d, *f)
		} else {
			err = term.printDiagnosis(d)
		}
		failed := 0
		for _, one := range d.Checks {
			if one.Result == broken {
				failed++
			}
		}
		if err == nil && failed > 0 {
			err = &outcome{codeFailed, fmt.Sprintf("monitor %s: %s failed", m.Name, many(failed, "check"))}
		}
		return err
	}
	return cmd
}

func diagnose(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, m *v1alpha1.RepositoryMonitor) (*diagnosis, error) {
	d := &diagnosis{Monitor: m.Name, Phase: m.Status.Phase}
	d.Checks = append(d.Checks, readyCheck(m))
	a := &m.Spec.Agents
	for _, of := range []struct {
		field string
		ref   *v1alpha1.LocalReference
	}{
		{"reviewer", a.Reviewer}, {"triager", a.Triager}, {"researcher", a.Researcher}, {"planner", a.Planner}, {"repairer", a.Repairer}, {"implementer", a.Implementer},
	} {
		if of.ref == nil {
			continue
		}
		_, err := c.Agents(m.Namespace).Get(ctx, of.ref.Name, metav1.GetOptions{})
		result, why := exists(err)
		d.Checks = append(d.Checks, checked{"Agent " + of.ref.Name + " (spec.agents." + of.field + ")", result, why})
	}
	for _, of := range []struct {
		field string
		ref   *v1alpha1.WorkspaceCredentialReference
	}{
		{"readCredentialRef", m.Spec.ReadCredentialRef},
		{"forgeCredentialRef", m.Spec.ForgeCredentialRef},
		{"publicationReadCredentialRef", m.Spec.PublicationReadCredentialRef},
		{"publicationCredentialRef", m.Spec.PublicationCredentialRef},
	} {
		if of.ref == nil {
			continue
		}
		result, why := secretCheck(ctx, c, m.Namespace, of.ref)
		d.Checks = append(d.Checks, checked{"Secret " + of.ref.Name + " (spec." + of.field + ")", result, why})
	}
	last, err := lastRun(ctx, term, c, m)
	if err != nil {
		return nil, err
	}
	d.Checks = append(d.Checks, last)
	items, err := c.MonitorItems(m.Namespace).List(ctx, metav1.ListOptions{FieldSelector: ofMonitor + "=" + m.Name + "," + ofState + "=" + string(v1alpha1.MonitorItemOpen)})
	if err != nil {
		return nil, err
	}
	for i := range items.Items {
		d.Blocked = append(d.Blocked, obstacles(&items.Items[i])...)
	}
	return d, nil
}

// readyCheck says whether a controller finds that the monitor can work.
func readyCheck(m *v1alpha1.RepositoryMonitor) checked {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return checked{"Ready", unsure, "no controller has looked at the monitor yet"}
	case m.Status.ObservedGeneration < m.Generation:
		return checked{"Ready", unsure, "no controller has looked at the present spec yet"}
	case c.Status != metav1.ConditionTrue:
		return checked{"Ready", broken, c.Reason + ": " + c.Message}
	}
	return checked{"Ready", healthy, c.Message}
}

// exists says what a read of an object found.
func exists(err error) (result health, why string) {
	switch {
	case err == nil:
		return healthy, ""
	case apierrors.IsNotFound(err):
		return broken, "it does not exist"
	case apierrors.IsForbidden(err):
		return unsure, "you may not read it"
	}
	return unsure, explain(err)
}

// secretCheck says whether a Secret exists and has the key. What it has there is not looked at.
func secretCheck(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, ref *v1alpha1.WorkspaceCredentialReference) (result health, why string) {
	answer := c.RESTClient().Get().AbsPath("/api/v1/namespaces", namespace, "secrets", ref.Name).Do(ctx)
	if err := answer.Error(); err != nil { // unlike the error of Raw, this one has the server's message
		return exists(err)
	}
	raw, err := answer.Raw()
	if err != nil {
		return exists(err)
	}
	var s corev1.Secret
	if err := json.Unmarshal(raw, &s); err != nil {
		return unsure, "answer of the server: " + err.Error()
	}
	if key := cmp.Or(ref.Key, "token"); len(s.Data[key]) == 0 {
		return broken, "it has nothing under the key " + key
	}
	return healthy, ""
}

// lastRun says how the newest run ended.
func lastRun(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, m *v1alpha1.RepositoryMonitor) (checked, error) {
	runs, err := c.MonitorRuns(m.Namespace).List(ctx, metav1.ListOptions{FieldSelector: ofMonitor + "=" + m.Name})
	if err != nil {
		return checked{}, err
	}
	if len(runs.Items) == 0 {
		return checked{"Last run", unsure, "there is none yet"}, nil
	}
	newestFirst(runs.Items, func(r *v1alpha1.MonitorRun) metav1.ObjectMeta { return r.ObjectMeta })
	r := &runs.Items[0]
	out := checked{"Last run", healthy, join(fmt.Sprintf("%s of %s, %s ago, %s", r.Name, about(r.Spec.TargetKind, r.Spec.TargetNumber), term.age(r.CreationTimestamp.Time), r.Status.State), r.Status.Message)}
	switch r.Status.State {
	case v1alpha1.MonitorRunFailed:
		out.Result = broken
	case v1alpha1.MonitorRunSucceeded:
	default:
		out.Result = unsure
	}
	return out, nil
}

// obstacles returns what keeps an item from going on.
func obstacles(i *v1alpha1.MonitorItem) (found []obstacle) {
	s := &i.Status
	if s.BlockedReason != "" {
		found = append(found, obstacle{i.Spec.TargetKind, i.Spec.Number, s.BlockedReason, s.Message})
	}
	if a := s.Automerge; a != nil && a.HeadSHA == s.HeadSHA && (a.State == v1alpha1.MonitorMergeBlocked || a.State == v1alpha1.MonitorMergeFailed) {
		found = append(found, obstacle{i.Spec.TargetKind, i.Spec.Number, "merge " + string(a.State), a.Reason})
	}
	if n := s.Issue; n != nil && n.Phase == v1alpha1.MonitorIssueBlocked && s.BlockedReason == "" {
		found = append(found, obstacle{i.Spec.TargetKind, i.Spec.Number, string(n.Phase), s.Message})
	}
	return found
}

func (term *terminal) printDiagnosis(d *diagnosis) error {
	words := map[health]string{healthy: term.paint(green, "ok  "), broken: term.paint(red, "FAIL"), unsure: term.paint(yellow, "?   ")}
	for _, c := range d.Checks {
		if err := term.say("%s  %s", words[c.Result], clean(join(c.Check, c.Message))); err != nil {
			return err
		}
	}
	return section(term, "Blocked", d.Blocked, func(o *obstacle) string {
		return fmt.Sprintf("%s  %s  %s", pad(about(o.TargetKind, o.Number), 18), pad(o.Reason, 16), o.Message)
	})
}
