// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/visible"
)

func policyCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Policies on what agents do"}
	cmd.AddCommand(policyTest(api, term))
	return cmd
}

func policyTest(api *server, term *terminal) *cobra.Command {
	var task, file, policies string
	cmd := &cobra.Command{
		Use: "test", Args: cobra.NoArgs, Short: "Put recorded calls of tools to the policies of the server, without making them",
		Long: "Put recorded calls of tools to the policies of the server, without making them.\n\n" +
			"The calls are those of a task (--task), or those of a file (--calls) with objects of kind ToolCall, as YAML or JSON.\n" +
			"Nothing is recorded: each call is a dry run, and policies see the user of this command as the caller.\n\n" +
			"The server keeps the calls of a task without secrets, at most 4 MiB of them. Calls that are not among them, or whose\n" +
			"arguments had secrets, are listed as not judged. To try a policy on these, write the calls into a file.\n\n" +
			"Policies are ValidatingAdmissionPolicies that match creates of toolcalls. The calls are judged by those of the\n" +
			"server or, with -f, by those of a file and their bindings, which need not be stored. A policy without a binding in the\n" +
			"file denies. Policies of a file may not refer to parameters or ask an authorizer, and know only the namespace's name.\n\n" +
			"The exit code is 2 if calls are denied.",
		Example: "  platform policy test --task nightly-report\n  platform policy test -f policy.yaml --task nightly-report\n" +
			"  platform policy test --task nightly-report --calls calls.yaml -o json",
	}
	cmd.Flags().StringVarP(&policies, "filename", "f", "", "file of policies and bindings to try in place of those of the server; - for standard input")
	cmd.Flags().StringVar(&task, "task", "", "task whose calls are judged; with --calls, the task of calls that name none")
	cmd.Flags().StringVar(&file, "calls", "", "file of ToolCalls; - for standard input")
	_ = cmd.RegisterFlagCompletionFunc("task", api.names("tasks")) // the flag exists
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if task == "" && file == "" {
			return errors.New("--task or --calls: one of them is required")
		}
		if policies == "-" && file == "-" {
			return errors.New("--filename and --calls: only one of them may be standard input")
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		tried, err := policiesOfFile(term, policies)
		if err != nil {
			return err
		}
		var calls []testedCall
		if file != "" {
			calls, err = callsOfFile(term, file, task)
		} else {
			calls, err = callsOfTask(cmd.Context(), c, namespace, task)
		}
		if err != nil {
			return err
		}
		if err := judgeAll(cmd.Context(), term.clock, c, namespace, calls, tried); err != nil {
			return err
		}
		if *f == asTable {
			err = showCalls(term, calls)
		} else {
			err = term.write(map[string]any{"calls": calls}, *f)
		}
		return cmp.Or(err, denied(calls))
	}
	return cmd
}

// judgeAll asks the server about calls, by its policies or by others.
func judgeAll(ctx context.Context, clock clock.Clock, c typed.CoreV1alpha1Interface, namespace string, calls []testedCall, tried []apiextensionsv1.JSON) error {
	if tried == nil {
		if err := awaitPolicies(ctx, clock, c.RESTClient()); err != nil {
			return err
		}
	}
	for i := range calls {
		if err := calls[i].judge(ctx, c, namespace, tried); err != nil {
			return err
		}
	}
	return nil
}

// testedCall is a call, and what policies said and say about it.
type testedCall struct {
	Task   string `json:"task"`
	Tool   string `json:"tool"`
	Kind   string `json:"kind,omitempty"`
	CallID string `json:"callID,omitempty"`
	// Source is where the arguments come from: record, approval, transcript or file; empty if they were not kept.
	Source string `json:"source,omitempty"`
	// Recorded is the verdict that the task's events show; empty for a call of a file.
	Recorded v1alpha1.ToolCallVerdict `json:"recorded,omitempty"`
	// Verdict is that of the policies now; empty if the call was not judged.
	Verdict  v1alpha1.ToolCallVerdict   `json:"verdict,omitempty"`
	Findings []v1alpha1.ToolCallFinding `json:"findings,omitempty"`
	// NotJudged says why there is no verdict.
	NotJudged string `json:"notJudged,omitempty"`

	arguments json.RawMessage
	key       callKey
}

// judge asks the server about the call, by its policies or by others.
func (t *testedCall) judge(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, policies []apiextensionsv1.JSON) error {
	if t.NotJudged != "" {
		return nil
	}
	out, err := c.ToolCalls(namespace).Create(ctx, &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
		TaskName: t.Task, ToolName: t.Tool, Kind: t.Kind, CallID: t.CallID, Arguments: &apiextensionsv1.JSON{Raw: t.arguments}, Policies: policies,
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("call of %s of task %s: %w", t.Tool, t.Task, err)
	}
	t.Verdict, t.Findings = out.Status.Verdict, out.Status.Findings
	return nil
}

// showCalls prints the calls, and how many could not be judged.
func showCalls(term *terminal, calls []testedCall) error {
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
		rows = append(rows, strings.Join([]string{c.Task, c.Tool, c.CallID, c.Source, string(c.Recorded), now, visible.Exact(why)}, "\t"))
	}
	if _, err := fmt.Fprintln(w, strings.Join(rows, "\n")); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(term.Out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	note(term.Err, fmt.Sprintf("%s: %d allowed, %d held for approval, %d denied, %d not judged",
		many(len(calls), "call"), counts[v1alpha1.ToolCallAllowed], counts[v1alpha1.ToolCallApprovalRequired], counts[v1alpha1.ToolCallDenied], left))
	if left > 0 {
		note(term.Err, "To judge the calls that were left out, give them in a file with --calls.")
	}
	return nil
}

// denied is the outcome of a test in which policies deny calls; nil if they deny none.
func denied(calls []testedCall) error {
	n := 0
	for i := range calls {
		if calls[i].Verdict == v1alpha1.ToolCallDenied {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &outcome{codeFailed, many(n, "call") + " denied"}
}
