// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func taskCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "task", Aliases: []string{"tasks", "tk"}, Short: "Tasks and what they did"}
	cmd.AddCommand(
		taskList(api, term), getOf(api, term, "TASK", "tasks", "Show tasks"), taskDescribe(api, term), taskCreate(api, term), taskEvents(api, term), taskWatch(api, term), taskWait(api, term),
		taskTrace(api, term), taskTree(api, term), taskChildren(api, term), taskFork(api, term), taskApprovals(api, term),
		taskDecide(api, term, approval.Approve, "Let a task take the action that it asks for"), taskDecide(api, term, approval.Decline, "Refuse the action that a task asks for", "deny", "reject"),
		taskLogs(api, term), taskResult(api, term), taskArtifacts(api, term), taskDownload(api, term), taskDelivery(api, term), taskPlan(api, term),
		taskShow(api, term), taskTranscript(api, term), taskSearch(api, term), taskDiff(api, term), taskCancel(api, term), taskDetach(api, term), taskDelete(api, term), taskRunNow(api, term),
		taskRerun(api, term),
		taskSuspend(api, term, "suspend", "Pause schedules, and agents between their iterations", "suspended", true),
		taskSuspend(api, term, "resume", "Let suspended tasks go on", "resumed", false),
	)
	return cmd
}

// phases are the valid values of task list --status.
var phases = []string{
	string(v1alpha1.TaskPending), string(v1alpha1.TaskRunning), string(v1alpha1.TaskFinalizing), string(v1alpha1.TaskSucceeded),
	string(v1alpha1.TaskFailed), string(v1alpha1.TaskScheduled), string(v1alpha1.TaskCancelled),
}

func taskList(api *server, term *terminal) *cobra.Command {
	var l listFlags
	var q queryFlags
	var status string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List tasks", Args: cobra.NoArgs,
		Long: "List tasks. With --sort-by or one of its filters, the server sorts and filters the tasks, and the table shows how long\n" +
			"each took. Such a list shows one moment, however many pages it has.",
		Example: "  platform task list --status Running\n" +
			"  platform task list --sort-by tokens --limit 10\n" +
			"  platform task list --sort-by duration --started-after 24h --agent writer",
	}
	l.add(cmd)
	q.add(cmd)
	cmd.Flags().StringVar(&status, "status", "", "only tasks in this phase, for example Running")
	offer(cmd, "status", cobra.FixedCompletions(phases, cobra.ShellCompDirectiveNoFileComp))
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if status != "" {
			if err := oneOf("--status", status, phases...); err != nil {
				return err
			}
		}
		if q.asked(cmd) {
			return queryTasks(cmd.Context(), api, term, &l, &q, status, *f)
		}
		if status != "" {
			l.fields = strings.Trim(l.fields+",status.phase="+status, ",")
		}
		return printList(cmd.Context(), api, term, "tasks", &l, *f)
	}
	return cmd
}

// printEvent prints one event in any format.
func printEvent(term *terminal, lines *timeline, e *v1alpha1.ExecutionEvent, f format) error {
	switch f {
	case asJSON:
		return json.NewEncoder(term.Out).Encode(e)
	case asYAML:
		if _, err := fmt.Fprintln(term.Out, "---"); err != nil {
			return err
		}
		return term.write(e, asYAML)
	default:
		return lines.print(e)
	}
}

func taskWatch(api *server, term *terminal) *cobra.Command {
	var e eventFlags
	var tree bool
	var sessions []string
	cmd := &cobra.Command{
		Use: "watch TASK...", Aliases: []string{"follow"}, Short: "Follow the events of tasks to their end", Args: cobra.MinimumNArgs(1),
		Long: "Follow the events of a task, or of several, from the first one to the end, across cut connections. With --tree, follow one\n" +
			"task and everything that it delegates, on all levels, in the order in which the events were stored, until all of it has\n" +
			"ended. Of several tasks, the exit code is that of the first one that did not succeed. With --session, follow sessions as well\n" +
			"until the tasks have ended.\n\n" + exitCodes,
		Example: "  platform task watch report\n" +
			"  platform task watch report primes\n" +
			"  platform task watch report --session reviews\n" +
			"  platform task watch report --tree\n" +
			"  platform task watch report --tree --type TaskSucceeded --type TaskFailed --type TaskCancelled -o json",
		ValidArgsFunction: api.namesOf("tasks"),
	}
	e.add(cmd)
	cmd.Flags().BoolVar(&tree, "tree", false, "also the events of everything that the task delegates")
	cmd.Flags().StringSliceVar(&sessions, "session", nil, "also the events of all tasks of this session; repeatable")
	offer(cmd, "session", api.namesOf("sessions"))
	f := addOutput(cmd, asTable, asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if tree && cmd.Flags().Changed("after") {
			return errors.New("--after: a sequence belongs to one task and cannot be combined with --tree")
		}
		several := len(args)+len(sessions) > 1
		switch {
		case several && tree:
			return errors.New("--tree: follows one task; name one and no session, or leave it out")
		case several && cmd.Flags().Changed("after"):
			return errors.New("--after: a sequence belongs to one task and cannot be combined with several, or with sessions")
		case several:
			return followSeveral(cmd.Context(), api, term, args, sessions, e.types, *f)
		case tree:
			return followTree(cmd.Context(), api, term, args[0], e.types, *f)
		}
		return followTask(cmd.Context(), api, term, args[0], e, *f)
	}
	return cmd
}

// followTask prints the events of a task as they arrive. The error describes the
// task's end.
func followTask(ctx context.Context, api *server, term *terminal, task string, flags eventFlags, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	lines := &timeline{terminal: term, out: term.Out}
	why := ""
	s := &stream{
		client: c.RESTClient(), clock: term.clock, namespace: namespace, resource: "tasks", name: task, after: flags.after, types: flags.types,
		event: func(e *v1alpha1.ExecutionEvent) error {
			if e.Type == v1alpha1.EventTaskFailed || e.Type == v1alpha1.EventTaskCancelled {
				why = clean(e.Summary)
			}
			return printEvent(term, lines, e, f)
		},
		gap: lines.gap,
	}
	last, err := s.follow(ctx)
	if err != nil {
		return err
	}
	return ended(task, last, why)
}

func taskWait(api *server, term *terminal) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait TASK", Short: "Wait for the end of a task", Args: cobra.ExactArgs(1), Long: "Wait for the end of a task.\n\n" + exitCodes,
		ValidArgsFunction: api.names("tasks"),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0 is never")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		err := awaitTask(ctx, api, term, args[0])
		if errors.Is(err, context.DeadlineExceeded) {
			return &outcome{codeUnknown, fmt.Sprintf("task %s has not ended within %s", args[0], timeout)}
		}
		if err != nil {
			return err
		}
		return term.say("task %s succeeded", args[0])
	}
	return cmd
}

// awaitTask returns at the end of a task; the error says how it ended, unless it succeeded.
func awaitTask(ctx context.Context, api *server, term *terminal, task string) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	why := ""
	s := &stream{
		client: c.RESTClient(), clock: term.clock, namespace: namespace, resource: "tasks", name: task,
		types: []string{string(v1alpha1.EventTaskSucceeded), string(v1alpha1.EventTaskFailed), string(v1alpha1.EventTaskCancelled)},
		event: func(e *v1alpha1.ExecutionEvent) error { why = clean(e.Summary); return nil },
	}
	last, err := s.follow(ctx)
	if err != nil {
		return err
	}
	if err := settled(ctx, c.Tasks(namespace), task, s.uid); err != nil {
		return err
	}
	return ended(task, last, why)
}

// settled returns when the status of a task whose stream has ended says so, too, which it does a moment later. How the task ended is
// known by then, so the only error is the end of the context: whoever may not read tasks, or finds another one, does not wait.
// A watch lasts minutes, and few of them are enough.
func settled(ctx context.Context, tasks typed.TaskInterface, name string, uid types.UID) error {
	over := func(t *v1alpha1.Task) bool { return t.UID != uid || t.Status.Phase.Terminal() }
	for range 10 {
		t, err := tasks.Get(ctx, name, metav1.GetOptions{})
		if err != nil || over(t) {
			break
		}
		w, err := tasks.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: t.ResourceVersion})
		if err != nil {
			break
		}
		for e := range w.ResultChan() {
			if t, ok := e.Object.(*v1alpha1.Task); ok && (over(t) || e.Type == watch.Deleted) {
				w.Stop()
				return nil
			}
		}
	}
	return ctx.Err()
}

func taskResult(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "result TASK", Short: "Print the result of a task", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks")}
	f := addOutput(cmd, "text", asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		inParts := *f == asJSON || *f == asYAML
		var r v1alpha1.TaskResult
		err = c.RESTClient().Get().Namespace(namespace).Resource("tasks").Name(args[0]).SubResource("result").
			Param("structured", strconv.FormatBool(inParts)).Do(cmd.Context()).Into(&r)
		if err != nil {
			return err
		}
		if !inParts {
			return printResult(term, r.Result)
		}
		return term.write(struct {
			Result     string                         `json:"result"`
			Structured *v1alpha1.TaskStructuredResult `json:"structured,omitempty"`
		}{r.Result, r.Structured}, *f)
	}
	return cmd
}

// printResult prints the result of a task.
func printResult(term *terminal, text string) error {
	_, err := fmt.Fprintln(term.Out, strings.TrimRight(text, "\n"))
	return err
}

func taskCancel(api *server, term *terminal) *cobra.Command {
	var reason string
	cmd := eachNamed(api, "cancel TASK...", "Ask tasks to stop", "tasks", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		if _, err := c.Tasks(namespace).Cancel(ctx, name, &v1alpha1.TaskCancellation{Reason: reason}, metav1.CreateOptions{}); err != nil {
			return err
		}
		return term.say("cancellation of task %s was requested", name)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for readers of the events")
	return cmd
}

func taskDelete(api *server, term *terminal) *cobra.Command {
	cmd := eachNamed(api, "delete TASK...", "Stop and remove tasks with everything they produced", "tasks", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		if err := c.Tasks(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return term.say("task %s deleted", name)
	})
	cmd.Aliases = []string{"rm"}
	return cmd
}
