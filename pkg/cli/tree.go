// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// treeNode is a task with what it delegated, as -o json and -o yaml print it.
type treeNode struct {
	Name           string             `json:"name"`
	UID            types.UID          `json:"uid"`
	Agent          string             `json:"agent,omitempty"`
	Phase          v1alpha1.TaskPhase `json:"phase"`
	Attempt        int32              `json:"attempt"`
	Iteration      int32              `json:"iteration,omitempty"`
	Reason         string             `json:"reason,omitempty"`
	Message        string             `json:"message,omitempty"`
	StartTime      *metav1.Time       `json:"startTime,omitempty"`
	CompletionTime *metav1.Time       `json:"completionTime,omitempty"`
	Detached       bool               `json:"detached,omitempty"`
	Approvals      []treeApproval     `json:"pendingApprovals,omitempty"`
	Children       []*treeNode        `json:"children,omitempty"`
	above          []types.UID        // its ancestors, from the root
}

// treeApproval is a decision that a task of the tree waits for.
type treeApproval struct {
	ID     string `json:"id"`
	Action string `json:"action,omitempty"`
	Tool   string `json:"tool,omitempty"`
}

func taskTree(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tree TASK", Short: "Show a task with everything that it delegated", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Long: "Show a task with everything that it delegated, on all levels: phase, agent, attempt and duration of each task, why it waits or\n" +
			"ended as it did, and the approvals that it waits for. Any task of a tree can be named; what is below it is shown.",
		Example: "  platform task tree report\n" +
			"  platform task tree report -o json | jq '.. | objects | select(.phase == \"Failed\") | .name'\n" +
			"  kubectl get tasks --field-selector rootTask=report",
	}
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return printTaskTree(cmd.Context(), api, term, args[0], *f)
	}
	return cmd
}

func printTaskTree(ctx context.Context, api *server, term *terminal, task string, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	top, err := c.Tasks(namespace).Get(ctx, task, metav1.GetOptions{})
	if err != nil {
		return err
	}
	tasks, err := tasksOfTree(ctx, c, top)
	if err != nil {
		return err
	}
	approvals, err := c.Approvals(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.rootTaskUID=" + string(rootUIDOf(top)) + ",status.state=" + string(v1alpha1.ApprovalPending)})
	switch {
	case apierrors.IsForbidden(err):
		note(term.Err, "approvals are not shown: "+explain(err))
		approvals = &v1alpha1.ApprovalList{}
	case err != nil:
		return err
	}
	root := growTree(top, tasks, approvals.Items)
	if f != asTable {
		return term.write(root, f)
	}
	return printTree(term, term.Out, root)
}

// rootUIDOf returns the UID of the task at the top of a task's tree. Another task may have its name by now.
func rootUIDOf(t *v1alpha1.Task) types.UID {
	if d := t.Status.Delegation; d != nil {
		return d.RootUID
	}
	return t.UID
}

// tasksOfTree returns the tasks of the tree that a task belongs to.
func tasksOfTree(ctx context.Context, c typed.CoreV1alpha1Interface, of *v1alpha1.Task) ([]v1alpha1.Task, error) {
	uid := rootUIDOf(of)
	list, err := c.Tasks(of.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "rootTaskUID=" + string(uid)})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// growTree puts the tasks below top under their parents, in the order of their creation. If a parent is gone, its
// children are shown under the nearest task above it that is still there.
func growTree(top *v1alpha1.Task, tasks []v1alpha1.Task, approvals []v1alpha1.Approval) *treeNode {
	slices.SortFunc(tasks, func(a, b v1alpha1.Task) int { return cmp.Compare(a.Status.CreationRevision, b.Status.CreationRevision) })
	root := nodeOf(top)
	nodes := map[types.UID]*treeNode{top.UID: root}
	var order []*treeNode
	for i := range tasks {
		t := &tasks[i]
		if t.UID == top.UID || t.Status.Delegation == nil || !slices.Contains(t.Status.Delegation.Ancestors, top.UID) {
			continue
		}
		n := nodeOf(t)
		nodes[t.UID] = n
		order = append(order, n)
	}
	for _, n := range order {
		for _, uid := range slices.Backward(n.above) {
			if parent := nodes[uid]; parent != nil {
				parent.Children = append(parent.Children, n)
				break
			}
		}
	}
	for i := range approvals {
		p := &approvals[i]
		if n := nodes[p.Spec.TaskUID]; n != nil {
			n.Approvals = append(n.Approvals, treeApproval{p.Name, p.Spec.Action, p.Spec.TargetTool})
		}
	}
	return root
}

func nodeOf(t *v1alpha1.Task) *treeNode {
	n := &treeNode{
		Name: t.Name, UID: t.UID, Agent: t.Status.AgentName, Phase: t.Status.Phase, Attempt: t.Status.Attempts, Iteration: t.Status.Iteration,
		Message: t.Status.Message, StartTime: t.Status.StartTime, CompletionTime: t.Status.CompletionTime,
	}
	if n.Phase == "" {
		n.Phase = v1alpha1.TaskPending
	}
	if n.Agent == "" && t.Spec.AgentRef != nil {
		n.Agent = t.Spec.AgentRef.Name
	}
	if d := t.Status.Delegation; d != nil {
		n.Detached, n.above = d.Detached, d.Ancestors
	}
	n.Reason = t.Reason()
	return n
}

// shownID is how many characters of an approval's id are printed; its beginning is enough to name it.
const shownID = 12

// printTree prints a line for each task and, below it, each approval that it waits for.
func printTree(term *terminal, out io.Writer, root *treeNode) error {
	p := treePrinter{terminal: term, counts: map[v1alpha1.TaskPhase]int{}}
	p.row(plain, "TASK", "PHASE", "AGENT", "ATTEMPT", "DURATION", "WHY")
	p.node(root, "", "")
	widths := make([]int, 5)
	for _, r := range p.rows {
		for i := range widths {
			if len(r.cells) > 1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i]))
			}
		}
	}
	for _, r := range p.rows {
		if _, err := fmt.Fprintln(out, p.text(r, widths)); err != nil {
			return err
		}
	}
	return p.summary(out)
}

// treePrinter collects the rows of a tree.
type treePrinter struct {
	*terminal
	rows      []treeRow
	counts    map[v1alpha1.TaskPhase]int
	approvals int
}

// treeRow is a line: the cells of a task, or one text about the task above it.
type treeRow struct {
	style style
	cells []string
}

func (p *treePrinter) row(s style, cells ...string) { p.rows = append(p.rows, treeRow{s, cells}) }

// text returns a row with aligned columns. The second one is painted.
func (p *treePrinter) text(r treeRow, widths []int) string {
	if len(r.cells) == 1 {
		return p.paint(r.style, r.cells[0])
	}
	var b strings.Builder
	used := 0
	for i, w := range widths {
		cell := pad(r.cells[i], w)
		used += w + 3
		if i == 1 {
			cell = p.paint(r.style, cell)
		}
		b.WriteString(cell + "   ")
	}
	why := r.cells[len(widths)]
	if p.Width > 0 {
		why = fit(why, max(20, p.Width-used))
	}
	b.WriteString(why)
	return strings.TrimRight(b.String(), " ")
}

// node adds a task, whose line begins with lead; the lines below it begin with below.
func (p *treePrinter) node(n *treeNode, lead, below string) {
	p.counts[n.Phase]++
	attempt := strconv.Itoa(int(n.Attempt))
	if n.Iteration > 0 {
		attempt += fmt.Sprintf(", iteration %d", n.Iteration)
	}
	why := n.Reason
	if why != "" && n.Message != "" && n.Phase.Terminal() {
		why += ": " + clean(n.Message)
	}
	if n.Detached {
		why = strings.TrimSuffix("detached, "+why, ", ")
	}
	colour := map[v1alpha1.TaskPhase]style{v1alpha1.TaskSucceeded: green, v1alpha1.TaskFailed: red, v1alpha1.TaskCancelled: yellow, v1alpha1.TaskRunning: cyan, v1alpha1.TaskFinalizing: cyan}[n.Phase]
	p.row(colour, lead+n.Name, string(n.Phase), n.Agent, attempt, took(n.StartTime, n.CompletionTime, n.Phase, p.clock.Now()), why)
	bar := below + "│  "
	if len(n.Children) == 0 {
		bar = below + "   "
	}
	for _, a := range n.Approvals {
		p.approvals++
		p.row(yellow, fmt.Sprintf("%s? %s: platform task approve %s %.*s", bar, clean(cmp.Or(a.Action, a.Tool, "a call of a tool")), n.Name, shownID, a.ID))
	}
	for i, c := range n.Children {
		if i == len(n.Children)-1 {
			p.node(c, below+"└─ ", below+"   ")
		} else {
			p.node(c, below+"├─ ", below+"│  ")
		}
	}
}

// summary prints how many tasks are in which phase.
func (p *treePrinter) summary(out io.Writer) error {
	var parts []string
	for _, phase := range phases {
		if c := p.counts[v1alpha1.TaskPhase(phase)]; c > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c, phase))
		}
	}
	if p.approvals > 0 {
		parts = append(parts, fmt.Sprintf("approvals that wait for a decision: %d", p.approvals))
	}
	_, err := fmt.Fprintln(out, p.paint(dim, strings.Join(parts, ", ")))
	return err
}
