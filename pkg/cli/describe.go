// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// describedEvents is how many of the newest events task describe prints.
const describedEvents = 10

func taskDescribe(api *server, term *terminal) *cobra.Command {
	cmd := eachNamed(api, "describe TASK...", "Show what is known about tasks: state, conditions, children, files, newest events", "tasks",
		func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
			return describeTask(ctx, api, term, c, namespace, name)
		})
	return cmd
}

func describeTask(ctx context.Context, api *server, term *terminal, c typed.CoreV1alpha1Interface, namespace, name string) error {
	t, err := c.Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := printHead(term, t); err != nil {
		return err
	}
	if err := printConditions(term, t); err != nil {
		return err
	}
	labels, fields := childrenOf(t)
	children, err := c.Tasks(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels, FieldSelector: fields})
	if err != nil {
		return err
	}
	if err := section(term, "Children", children.Items, func(c *v1alpha1.Task) string {
		return fmt.Sprintf("%s  %s", pad(c.Name, nameColumns), c.Status.Phase)
	}); err != nil {
		return err
	}
	files, err := c.Tasks(namespace).ListArtifacts(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := section(term, "Artifacts", files.Artifacts, func(f *v1alpha1.TaskArtifact) string {
		return fmt.Sprintf("%s  %s", pad(f.Filename, nameColumns), many(int(f.Size), "byte"))
	}); err != nil {
		return err
	}
	return newestEvents(ctx, api, term, c, namespace, name)
}

// printHead prints what the task is and how it stands.
func printHead(term *terminal, t *v1alpha1.Task) error {
	s := &t.Status
	node := nodeOf(t)
	at := func(v *metav1.Time) string {
		if v == nil {
			return ""
		}
		return v.Local().Format("2006-01-02 15:04:05")
	}
	used := ""
	if u := s.Usage; u != nil {
		used = fmt.Sprintf("%s in, %s out", tokens(u.InputTokens), tokens(u.OutputTokens))
	}
	session := ""
	if t.Spec.SessionRef != nil {
		session = t.Spec.SessionRef.Name
	}
	schedule := ""
	if t.Spec.Schedule != "" { // the time zone alone is a default
		schedule = strings.TrimSpace(t.Spec.Schedule + " " + t.Spec.TimeZone)
	}
	parent := ""
	if d := s.Delegation; d != nil {
		parent = t.Annotations[v1alpha1.AnnotationParentTaskName]
	}
	for _, line := range [][2]string{
		{"Name", t.Name},
		{"Namespace", t.Namespace},
		{"Type", string(t.Spec.Type)},
		{"Phase", string(node.Phase)},
		{"Reason", node.Reason},
		{"Message", s.Message},
		{"Agent", node.Agent},
		{"Provider", s.Provider},
		{"Model", s.Model},
		{"Tokens", used},
		{"Session", session},
		{"Parent", parent},
		{"Created", at(&t.CreationTimestamp)},
		{"Creator", t.Annotations[v1alpha1.AnnotationRequestedBy]},
		{"Started", at(s.StartTime)},
		{"Ended", at(s.CompletionTime)},
		{"Duration", took(s.StartTime, s.CompletionTime, s.Phase, term.clock.Now())},
		{"Attempts", strconv.Itoa(int(s.Attempts))},
		{"Schedule", schedule},
		{"Next run", at(s.NextScheduleTime)},
		{"Prompt", t.Spec.Prompt},
		{"Repository", repositoryOf(t)},
		{"Delivery", deliveryOf(t)},
		{"Command", strings.Join(append(append([]string{}, t.Spec.Command...), t.Spec.Args...), " ")},
	} {
		if line[1] == "" {
			continue
		}
		if err := term.say("%s %s", pad(line[0]+":", 11), clean(line[1])); err != nil {
			return err
		}
	}
	return nil
}

// repositoryOf names the repository of a task and the commit that its run began with, or what it asks for until that is known.
func repositoryOf(t *v1alpha1.Task) string {
	w := t.Spec.Workspace
	if w == nil {
		return ""
	}
	text, at := w.GitRepo, cmp.Or(w.Ref, w.Branch)
	if d := t.Status.Delivery; d != nil {
		at = cmp.Or(d.StartingSHA, at)
	}
	if at != "" {
		text += " at " + at
	}
	if w.SubPath != "" {
		text += ", folder " + w.SubPath
	}
	if prior := t.Spec.PriorTaskRef; prior != nil {
		text += ", with the changes of task " + prior.Name
	}
	return text
}

func printConditions(term *terminal, t *v1alpha1.Task) error {
	return section(term, "Conditions", t.Status.Conditions, func(c *metav1.Condition) string {
		return fmt.Sprintf("%s  %s  %s  %s", pad(c.Type, nameColumns), pad(string(c.Status), 7), pad(c.Reason, nameColumns), c.Message)
	})
}

// section prints a heading and a line for each item, if there are any.
func section[T any](term *terminal, heading string, items []T, line func(*T) string) error {
	if len(items) == 0 {
		return nil
	}
	if err := term.say("\n%s", term.paint(bold, heading)); err != nil {
		return err
	}
	for i := range items {
		if err := term.say("  %s", strings.TrimRight(clean(line(&items[i])), " ")); err != nil {
			return err
		}
	}
	return nil
}

// newestEvents prints the newest events of a task.
func newestEvents(ctx context.Context, api *server, term *terminal, c typed.CoreV1alpha1Interface, namespace, name string) error {
	r := c.RESTClient().Get().Namespace(namespace).Resource("tasks").Name(name).SubResource("events")
	page := &v1alpha1.ExecutionEventPage{}
	if err := r.Param("limit", "1").Do(ctx).Into(page); err != nil {
		return err
	}
	if page.LatestSeq == 0 {
		return nil
	}
	heading := "Events"
	if page.LatestSeq > describedEvents {
		heading = fmt.Sprintf("Events (the newest %d of %d)", describedEvents, page.LatestSeq)
	}
	if err := term.say("\n%s", term.paint(bold, heading)); err != nil {
		return err
	}
	return printEvents(ctx, api, term, "tasks", name, partFlags{eventFlags: eventFlags{after: max(0, page.LatestSeq-describedEvents)}}, asTable)
}
