// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

// issueCommand returns the commands about one issue.
func issueCommand(api *server, term *terminal) *cobra.Command {
	const kind = v1alpha1.MonitorIssue
	cmd := &cobra.Command{Use: "issue", Short: "Have something done about an issue"}
	for _, c := range []struct {
		intent v1alpha1.MonitorIntent
		short  string
	}{
		{v1alpha1.MonitorTriage, "Have an issue looked at"},
		{v1alpha1.MonitorResearch, "Have an agent find out about an issue"},
		{v1alpha1.MonitorPlan, "Have the implementation of an issue planned"},
		{v1alpha1.MonitorApprovePlan, "Approve of the plan of an issue"},
		{v1alpha1.MonitorImplement, "Have an issue implemented"},
		{v1alpha1.MonitorDecompose, "Have an issue divided into smaller ones"},
		{v1alpha1.MonitorStop, "End all work on an issue"},
		{v1alpha1.MonitorResume, "Permit work on an issue again"},
	} {
		cmd.AddCommand(intentCommand(api, term, kind, c.intent, c.short))
	}
	implementation, patch := &cobra.Command{Use: "implementation", Short: "The implementation of an issue"}, &cobra.Command{Use: "patch", Short: "What the implementation of an issue changes"}
	implementation.AddCommand(implementationGet(api, term))
	patch.AddCommand(patchPreview(api, term))
	cmd.AddCommand(itemStatus(api, term, kind, "Show where the work on an issue is"), implementation, patch)
	return cmd
}

// pullRequestCommand returns the commands about one pull request.
func pullRequestCommand(api *server, term *terminal) *cobra.Command {
	const kind, items = v1alpha1.MonitorPullRequest, "monitoritems"
	cmd := &cobra.Command{Use: "pr", Short: "Have something done about a pull request"}
	for _, c := range []struct {
		intent v1alpha1.MonitorIntent
		short  string
	}{
		{v1alpha1.MonitorReviewIntent, "Have a pull request reviewed, also if it was already"},
		{v1alpha1.MonitorFix, "Have the findings of the review mended"},
		{v1alpha1.MonitorFixCI, "Have failed checks mended"},
		{v1alpha1.MonitorUpdateBranch, "Bring the base branch into a pull request"},
		{v1alpha1.MonitorAutomergeIntent, "Have a pull request merged when everything permits it"},
		{v1alpha1.MonitorStop, "End all work on a pull request"},
		{v1alpha1.MonitorResume, "Permit work on a pull request again"},
	} {
		cmd.AddCommand(intentCommand(api, term, kind, c.intent, c.short))
	}
	repairs, mergeable := &cobra.Command{Use: "repairs", Short: "Repairs of pull requests"}, &cobra.Command{Use: "ready", Short: "Pull requests that everything permits to merge"}
	repairs.AddCommand(recordList{
		use: "list", short: "List pull requests that were repaired, or are", resource: items, fixed: ofKind + "=" + string(kind) + ",status.repair.phase!=",
		by:      []narrowing{byMonitor, byNumber, {"repair-state", "status.repair.phase", "only repairs that are so far: queued, succeeded or failed"}},
		columns: "NAME:.metadata.name,MONITOR:.spec.monitorName,NUMBER:.spec.number,REPAIR:.status.repair.phase,ATTEMPTS:.status.repair.attempts,TASK:.status.repair.taskName,MESSAGE:.status.repair.message",
	}.command(api, term))
	mergeable.AddCommand(recordList{
		use: "list", short: "List pull requests that everything permits to merge", resource: items,
		fixed: ofKind + "=" + string(kind) + ",status.automerge.state=" + string(v1alpha1.MonitorMergeReady), by: []narrowing{byMonitor, byNumber},
	}.command(api, term))
	cmd.AddCommand(itemStatus(api, term, kind, "Show what is known of a pull request, and the work on it"), repairs, mergeable, readinessOf(api, term))
	return cmd
}

// target is a pull request or issue that a command line names.
type target struct {
	monitor string
	kind    v1alpha1.MonitorTargetKind
	number  int64
}

// String names it for people.
func (t target) String() string {
	return strings.ReplaceAll(string(t.kind), "_", " ") + " " + strconv.FormatInt(t.number, 10)
}

// item returns the name of its MonitorItem.
func (t target) item() string {
	return repomonitor.ItemName(&v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: t.monitor}}, t.kind, t.number)
}

// selector selects its records.
func (t target) selector() string {
	return ofMonitor + "=" + fields.EscapeValue(t.monitor) + "," + ofKind + "=" + string(t.kind) + "," + ofNumber + "=" + strconv.FormatInt(t.number, 10)
}

// get reads its item.
func (t target) get(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string) (*v1alpha1.MonitorItem, error) {
	i, err := c.MonitorItems(namespace).Get(ctx, t.item(), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return i, err
	}
	if _, err := c.RepositoryMonitors(namespace).Get(ctx, t.monitor, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the monitor %s has not seen %s; to have it look: platform monitor run %s --target-kind %s --target-number %d", t.monitor, t, t.monitor, t.kind, t.number)
}

// ofTarget returns a command about one pull request or issue.
func ofTarget(api *server, use, short string, kind v1alpha1.MonitorTargetKind, do func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) error) *cobra.Command {
	cmd := &cobra.Command{Use: use + " MONITOR NUMBER", Short: short, Args: cobra.ExactArgs(2), ValidArgsFunction: api.names(monitors)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number, err := strconv.ParseInt(strings.TrimPrefix(args[1], "#"), 10, 64)
		if err != nil || number < 1 {
			return fmt.Errorf("%q must be the number of a pull request or issue", args[1])
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, namespace, target{args[0], kind, number})
	}
	return cmd
}

// needsHead reports whether a command about a pull request is for a certain head.
func needsHead(intent v1alpha1.MonitorIntent) bool {
	return intent != v1alpha1.MonitorStop && intent != v1alpha1.MonitorResume
}

// intentCommand returns a command that asks a monitor for something. Without --target-sha it is for the head that the monitor has seen.
func intentCommand(api *server, term *terminal, kind v1alpha1.MonitorTargetKind, intent v1alpha1.MonitorIntent, short string) *cobra.Command {
	var sha string
	var f *format
	cmd := ofTarget(api, strings.ReplaceAll(string(intent), "_", "-"), short, kind, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) error {
		if sha == "" && kind == v1alpha1.MonitorPullRequest && needsHead(intent) {
			i, err := t.get(ctx, c, namespace)
			if err != nil {
				return err
			}
			if sha = i.Status.HeadSHA; sha == "" {
				return fmt.Errorf("the monitor %s does not know the head of %s; give --target-sha", t.monitor, t)
			}
			note(term.Err, strings.TrimSpace("for the head "+clean(sha)+", as the monitor saw it "+term.ago(i.Status.ObservedAt)))
		}
		asked := &v1alpha1.MonitorCommandRequest{TargetKind: kind, Number: t.number, Intent: intent, TargetSHA: sha}
		return giveCommand(ctx, term, c, namespace, t.monitor, asked, *f)
	})
	if kind == v1alpha1.MonitorPullRequest {
		cmd.Flags().StringVar(&sha, "target-sha", "", "the head that the command is for; if the head is another one by then, nothing is done (default: the one that the monitor saw last)")
	}
	f = addOutput(cmd, asTable, asJSON, asYAML, asName)
	return cmd
}

func commandCreate(api *server, term *terminal) *cobra.Command {
	asked := &v1alpha1.MonitorCommandRequest{}
	cmd := &cobra.Command{
		Use: "create MONITOR --kind KIND --number NUMBER --intent INTENT", Short: "Ask a monitor for something", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(monitors),
		Long: "Ask a monitor for something about one pull request or issue. platform monitor issue and platform monitor pr do the same in fewer words.",
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&asked.TargetKind), "kind", "", "pull_request or issue")
	flags.Int64Var(&asked.Number, "number", 0, "its number")
	flags.StringVar((*string)(&asked.Intent), "intent", "", "what is asked for, such as review or implement")
	flags.StringVar(&asked.TargetSHA, "target-sha", "", "the head of the pull request that the command is for")
	for _, required := range []string{"kind", "number", "intent"} {
		_ = cmd.MarkFlagRequired(required) // the flag exists
	}
	offerTargets(cmd, "kind")
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		return giveCommand(cmd.Context(), term, c, namespace, args[0], asked, *f)
	}
	return cmd
}

func giveCommand(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, namespace, monitor string, asked *v1alpha1.MonitorCommandRequest, f format) error {
	made := &v1alpha1.MonitorCommand{}
	if err := postBelow(ctx, c, namespace, monitors, monitor, "commands", asked, made); err != nil {
		return err
	}
	return printCreated(term, made, "MonitorCommand", f)
}

// ago says how long ago a time was; empty if it is not known.
func (term *terminal) ago(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return term.age(t.Time) + " ago"
}

// implementationsOf returns the implementations of an issue, the newest first.
func implementationsOf(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) ([]v1alpha1.MonitorWorkAction, error) {
	list, err := c.MonitorWorkActions(namespace).List(ctx, metav1.ListOptions{FieldSelector: t.selector() + "," + ofAction + "=" + string(v1alpha1.MonitorImplement)})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("the monitor %s has no implementation of %s", t.monitor, t)
	}
	newestFirst(list.Items, func(w *v1alpha1.MonitorWorkAction) metav1.ObjectMeta { return w.ObjectMeta })
	return list.Items, nil
}

func implementationGet(api *server, term *terminal) *cobra.Command {
	var f *format
	cmd := ofTarget(api, "get", "Show the newest implementation of an issue", v1alpha1.MonitorIssue, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) error {
		found, err := implementationsOf(ctx, c, namespace, t)
		if err != nil {
			return err
		}
		return printNamed(ctx, api, term, "monitorworkactions", []string{found[0].Name}, *f)
	})
	f = addOutput(cmd, objectFormats...)
	return cmd
}

// patchPreview prints the diff of the task of an implementation, which is an artifact of the task.
func patchPreview(api *server, term *terminal) *cobra.Command {
	cmd := ofTarget(api, "preview", "Print what the newest implementation of an issue changed", v1alpha1.MonitorIssue, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) error {
		found, err := implementationsOf(ctx, c, namespace, t)
		if err != nil {
			return err
		}
		for i := range found {
			if task := found[i].Status.TaskName; task != "" {
				return printChanges(ctx, term, c, namespace, task)
			}
		}
		return errors.New("the implementation has no task yet")
	})
	return cmd
}

// readiness is whether a pull request can be merged, as far as its monitor knows.
type readiness struct {
	Ready bool `json:"ready"`
	// Reason says why it is not ready.
	Reason    string                         `json:"reason,omitempty"`
	HeadSHA   string                         `json:"headSHA,omitempty"`
	Checks    string                         `json:"checks,omitempty"`
	Review    v1alpha1.MonitorVerdict        `json:"reviewVerdict,omitempty"`
	Automerge v1alpha1.MonitorAutomergeState `json:"automergeState,omitempty"`
	Observed  *metav1.Time                   `json:"observedAt,omitempty"`
}

func readinessOf(api *server, term *terminal) *cobra.Command {
	var f *format
	cmd := ofTarget(api, "readiness", "Say whether a pull request can be merged and, if not, why", v1alpha1.MonitorPullRequest, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) error {
		i, err := t.get(ctx, c, namespace)
		if err != nil {
			return err
		}
		r := ready(&i.Status)
		if *f != asTable {
			err = term.write(r, *f)
		} else {
			state := term.paint(green, "yes")
			if !r.Ready {
				state = term.paint(red, "no") + ": " + clean(r.Reason)
			}
			err = term.facts([][2]string{{"Ready", state}, {"Head", clean(r.HeadSHA)}, {"Checks", clean(r.Checks)}, {"Review", string(r.Review)}, {"Merge", string(r.Automerge)}, {"Seen", term.ago(r.Observed)}})
		}
		if err == nil && !r.Ready {
			err = &outcome{codeFailed, fmt.Sprintf("%s is not ready to be merged", t)}
		}
		return err
	})
	cmd.Long = "Say whether a pull request can be merged and, if not, why, as the monitor saw it last. The exit code is 2 if it cannot."
	f = addOutput(cmd, asTable, asJSON, asYAML)
	return cmd
}

// ready says whether a pull request can be merged. The monitor decides that; this says what it wrote down.
func ready(s *v1alpha1.MonitorItemStatus) readiness {
	r := readiness{HeadSHA: s.HeadSHA, Checks: s.Checks, Observed: s.ObservedAt}
	if s.Review != nil && s.Review.HeadSHA == s.HeadSHA {
		r.Review = s.Review.Verdict
	}
	merge := s.Automerge
	if merge != nil && merge.HeadSHA == s.HeadSHA {
		r.Automerge = merge.State
	}
	switch {
	case s.State != v1alpha1.MonitorItemOpen:
		r.Reason = "it is " + string(s.State)
	case s.BlockedReason != "":
		r.Reason = cmp.Or(s.Message, s.BlockedReason)
	case s.Stopped:
		r.Reason = "the command stop was given"
	case r.Automerge == v1alpha1.MonitorMergeReady || r.Automerge == v1alpha1.MonitorMergeStarted:
		r.Ready = true
	case r.Automerge != "":
		r.Reason = cmp.Or(merge.Reason, string(r.Automerge))
	case r.Review == "":
		r.Reason = "the head is not reviewed yet"
	case r.Review != v1alpha1.MonitorVerdictPassed:
		r.Reason = "the review of the head came to " + string(r.Review)
	default:
		r.Reason = "the monitor has not asked the code host about it, as it does before it merges (spec.automerge)"
	}
	return r
}
