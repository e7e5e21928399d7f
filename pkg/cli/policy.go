// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func policyCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Policies on what agents do"}
	cmd.AddCommand(policyTest(a))
	return cmd
}

func policyTest(a *app) *cobra.Command {
	var task, file string
	cmd := &cobra.Command{
		Use: "test", Args: cobra.NoArgs, Short: "Put recorded calls of tools to the policies of the server, without making them",
		Long: "Put recorded calls of tools to the policies of the server, without making them.\n\n" +
			"The calls are those of a task (--task), or those of a file (--calls) with objects of kind ToolCall, as YAML or JSON.\n" +
			"Nothing is recorded: each call is a dry run, and policies see the user of this command as the caller.\n\n" +
			"The platform does not keep the arguments of calls in events. For a task, they are taken from its approvals and from\n" +
			"the transcript of its session. Calls whose arguments were not kept are listed as not judged. To try a policy on\n" +
			"these, write the calls into a file.\n\n" +
			"Policies are ValidatingAdmissionPolicies that match creates of toolcalls. A policy is tried once it is stored and\n" +
			"bound; with validationActions [Audit] its binding records what it finds and holds nothing back.",
		Example: "  platform policy test --task nightly-report\n  platform policy test --task nightly-report --calls calls.yaml -o json",
	}
	cmd.Flags().StringVar(&task, "task", "", "task whose calls are judged; with --calls, the task of calls that name none")
	cmd.Flags().StringVar(&file, "calls", "", "file of ToolCalls; - for standard input")
	_ = cmd.RegisterFlagCompletionFunc("task", a.names("tasks")) // the flag exists
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if task == "" && file == "" {
			return errors.New("--task or --calls: one of them is required")
		}
		c, namespace, err := a.client()
		if err != nil {
			return err
		}
		var calls []testedCall
		if file != "" {
			calls, err = a.callsOfFile(file, task)
		} else {
			calls, err = callsOfTask(cmd.Context(), c, namespace, task)
		}
		if err != nil {
			return err
		}
		for i := range calls {
			if err := calls[i].judge(cmd.Context(), c, namespace); err != nil {
				return err
			}
		}
		if *f != asTable {
			return a.write(map[string]any{"calls": calls}, *f)
		}
		return a.showCalls(calls)
	}
	return cmd
}

// testedCall is a call, and what policies said and say about it.
type testedCall struct {
	Task   string `json:"task"`
	Tool   string `json:"tool"`
	CallID string `json:"callID,omitempty"`
	// Source is where the arguments come from: approval, transcript or file; empty if they were not kept.
	Source string `json:"source,omitempty"`
	// Recorded is the verdict that the task's events show; empty for a call of a file.
	Recorded v1alpha1.ToolCallVerdict `json:"recorded,omitempty"`
	// Verdict is that of the policies now; empty if the call was not judged.
	Verdict  v1alpha1.ToolCallVerdict   `json:"verdict,omitempty"`
	Findings []v1alpha1.ToolCallFinding `json:"findings,omitempty"`
	// NotJudged says why there is no verdict.
	NotJudged string `json:"notJudged,omitempty"`

	arguments json.RawMessage
}

// judge asks the server about the call.
func (t *testedCall) judge(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string) error {
	if t.NotJudged != "" {
		return nil
	}
	out, err := c.ToolCalls(namespace).Create(ctx, &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
		TaskName: t.Task, ToolName: t.Tool, CallID: t.CallID, Arguments: &apiextensionsv1.JSON{Raw: t.arguments},
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("call of %s of task %s: %w", t.Tool, t.Task, err)
	}
	t.Verdict, t.Findings = out.Status.Verdict, out.Status.Findings
	return nil
}

// callsOfFile reads ToolCalls. task is that of calls that name none.
func (a *app) callsOfFile(name, task string) ([]testedCall, error) {
	data, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	var calls []testedCall
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var call v1alpha1.ToolCall
		err := docs.Decode(&call)
		switch {
		case errors.Is(err, io.EOF) && len(calls) == 0:
			return nil, fmt.Errorf("%s: has no calls; write objects of kind ToolCall with spec.toolName and spec.arguments", name)
		case errors.Is(err, io.EOF):
			return calls, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case call.Kind == "" && call.Spec.ToolName == "": // an empty document
			continue
		case call.Kind != "ToolCall":
			return nil, fmt.Errorf("%s: kind: must be ToolCall, not %q", name, call.Kind)
		case call.Spec.ToolName == "":
			return nil, fmt.Errorf("%s: spec.toolName: is required", name)
		case call.Spec.TaskName == "" && task == "":
			return nil, fmt.Errorf("%s: spec.taskName: is required without --task, because policies see the task of a call", name)
		}
		t := testedCall{Task: call.Spec.TaskName, Tool: call.Spec.ToolName, CallID: call.Spec.CallID, Source: "file", arguments: json.RawMessage("{}")}
		if t.Task == "" {
			t.Task = task
		}
		if call.Spec.Arguments != nil {
			t.arguments = call.Spec.Arguments.Raw
		}
		calls = append(calls, t)
	}
}

// callsOfTask returns the calls that the events of a task show, in their order, with the arguments that were kept.
func callsOfTask(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) ([]testedCall, error) {
	task, err := c.Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	calls, err := recordedCalls(ctx, c, task)
	if err != nil || len(calls) == 0 {
		return calls, err
	}
	kept := keptArguments{}
	if err := kept.ofApprovals(ctx, c, task); err != nil {
		return nil, err
	}
	if err := kept.ofTranscript(ctx, c, task); err != nil {
		return nil, err
	}
	for i := range calls {
		k, ok := kept[[2]string{calls[i].CallID, calls[i].Tool}]
		switch {
		case !ok:
			calls[i].NotJudged = "its arguments were not kept"
		case k.partly != "":
			calls[i].NotJudged = k.partly
		default:
			calls[i].Source, calls[i].arguments = k.source, k.arguments
		}
	}
	return calls, nil
}

// recordedCalls returns the calls that were made, denied or held for approval. The ids of calls may repeat in another
// attempt.
func recordedCalls(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) ([]testedCall, error) {
	var calls []testedCall
	place := map[string]int{}
	attempt := 0
	options := metav1.ListOptions{FieldSelector: "taskName=" + task.Name, Limit: 500}
	for {
		page, err := c.ExecutionEvents(task.Namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			e := &page.Items[i]
			var verdict v1alpha1.ToolCallVerdict
			switch e.Type {
			case v1alpha1.EventWorkerStarted:
				attempt++
				continue
			case v1alpha1.EventToolCallStarted:
				verdict = v1alpha1.ToolCallAllowed
			case v1alpha1.EventToolCallJudged:
				verdict = recordedVerdict(e)
			default:
				continue
			}
			key := strconv.Itoa(attempt) + "/" + e.ToolCallID + "/" + e.ToolName
			at, seen := place[key]
			if !seen {
				at = len(calls)
				place[key] = at
				calls = append(calls, testedCall{Task: task.Name, Tool: e.ToolName, CallID: e.ToolCallID})
			}
			if !seen || e.Type == v1alpha1.EventToolCallJudged {
				calls[at].Recorded = verdict
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return calls, nil
		}
	}
}

func recordedVerdict(e *v1alpha1.ExecutionEvent) v1alpha1.ToolCallVerdict {
	var content struct {
		Verdict v1alpha1.ToolCallVerdict `json:"verdict"`
	}
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &content) != nil {
		return ""
	}
	return content.Verdict
}

// keptArguments are the arguments of calls that something else than events keeps, by the id and the tool of the call.
type keptArguments map[[2]string]kept

type kept struct {
	source    string
	arguments json.RawMessage
	// partly is set if only a part of the arguments was kept.
	partly string
}

// ofApprovals adds those that people were asked about.
func (k keptArguments) ofApprovals(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	list, err := c.Approvals(task.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskUID=" + string(task.UID)})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i].Spec
		one := kept{source: "approval"}
		switch {
		case s.TargetArgsPreview == nil:
			continue
		case approval.Exact(s):
			one.arguments = s.TargetArgsPreview.Raw
		default:
			one.partly = "its approval keeps the arguments without secrets or cut"
		}
		k[[2]string{s.ToolCallID, s.TargetTool}] = one
	}
	return nil
}

// ofTranscript adds those of the calls that the session of the task has.
func (k keptArguments) ofTranscript(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	if task.Spec.SessionRef == nil {
		return nil
	}
	for through := ""; ; {
		page := &v1alpha1.SessionTranscript{}
		r := c.RESTClient().Get().Namespace(task.Namespace).Resource("sessions").Name(task.Spec.SessionRef.Name).SubResource("transcript").Param("newest", "500")
		if through != "" {
			r = r.Param("through", through)
		}
		if err := r.Do(ctx).Into(page); err != nil {
			return fmt.Errorf("session %s: %w", task.Spec.SessionRef.Name, err)
		}
		for _, m := range page.Items {
			for _, call := range m.ToolCalls {
				key := [2]string{call.ID, call.Name}
				if old, known := k[key]; (!known || old.partly != "") && json.Valid([]byte(call.Arguments)) {
					k[key] = kept{source: "transcript", arguments: json.RawMessage(call.Arguments)}
				}
			}
		}
		if len(page.Items) < 2 || page.Items[0].Order <= 1 || page.Items[0].ID == through {
			return nil
		}
		through = page.Items[0].ID
	}
}

// showCalls prints the calls, and how many could not be judged.
func (a *app) showCalls(calls []testedCall) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	counts := map[v1alpha1.ToolCallVerdict]int{}
	left := 0
	rows := []string{"TASK\tTOOL\tCALL\tARGUMENTS FROM\tRECORDED\tNOW\tWHY"}
	for i := range calls {
		c := &calls[i]
		now, why := string(c.Verdict), c.NotJudged
		if why != "" {
			now = "not judged"
			left++
		} else {
			counts[c.Verdict]++
		}
		if len(c.Findings) > 0 {
			why = strings.TrimPrefix(c.Findings[0].Policy+": "+c.Findings[0].Message, ": ")
		}
		rows = append(rows, strings.Join([]string{c.Task, c.Tool, c.CallID, c.Source, string(c.Recorded), now, approval.Visible(why)}, "\t"))
	}
	if _, err := fmt.Fprintln(w, strings.Join(rows, "\n")); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(a.Out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	note(a.Err, fmt.Sprintf("%d calls: %d allowed, %d held for approval, %d denied, %d not judged",
		len(calls), counts[v1alpha1.ToolCallAllowed], counts[v1alpha1.ToolCallApprovalRequired], counts[v1alpha1.ToolCallDenied], left))
	if left > 0 {
		note(a.Err, "The arguments of calls are not kept in events. To judge the calls that were left out, give them in a file with --calls.")
	}
	return nil
}
