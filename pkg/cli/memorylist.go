// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// searchedBy adds the filters of a search for memories, and returns their names.
func searchedBy(f *pflag.FlagSet, s *v1alpha1.MemorySearchSpec) []string {
	f.StringSliceVar(&s.Tags, "tags", nil, "tags that a memory must all have")
	f.StringVar(&s.Source, "source", "", "source of the memory")
	f.StringVar(&s.AgentName, "agent", "", "agent that the memory is for")
	f.StringVar(&s.SessionName, "session", "", "session that the memory is for")
	f.StringVar(&s.TaskName, "task", "", "task that the memory is about")
	f.BoolVar(&s.IncludeDisabled, "include-disabled", false, "also disabled memories")
	f.BoolVar(&s.IncludeDeleted, "include-deleted", false, "also discarded memories")
	return []string{"tags", "source", "agent", "session", "task", "include-disabled", "include-deleted"}
}

// memoryList lists all memories, or with filters those that a search finds.
func memoryList(api *server, term *terminal) *cobra.Command {
	var l listFlags
	var s v1alpha1.MemorySearchSpec
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List memories", Args: cobra.NoArgs,
		Long: "List memories: without filters all of them, with filters those that match, 200 at most, and disabled or discarded ones\n" +
			"only if the filters say so.",
		Example: "  platform memory list\n  platform memory list --query 'release gate' --tags ci --include-disabled",
	}
	l.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&s.Query, "query", "", "words in the text; the best matches come first")
	flags.StringSliceVar(&s.IDs, "ids", nil, "names of memories")
	filters := append(searchedBy(flags, &s), "query", "ids")
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.ContainsFunc(filters, flags.Changed) {
			return printList(cmd.Context(), api, term, "memories", &l, *f)
		}
		if err := l.searchable(); err != nil {
			return err
		}
		s.Limit = int32(min(l.limit, mostMemories))
		if s.Limit == 0 {
			s.Limit = mostMemories
		}
		return foundMemories(cmd.Context(), api, term, s, *f)
	}
	return cmd
}

// mostMemories is how many memories a search finds at most.
const mostMemories = 200

// searchable reports which flags of a list a search does not have.
func (l *listFlags) searchable() error {
	if l.selector != "" || l.fields != "" || l.token != "" || l.everywhere || l.follow {
		return errors.New("--selector, --field-selector, --continue, --all-namespaces and --watch cannot be combined with the filters of a search")
	}
	return nil
}

// foundMemories prints the memories that a search finds.
func foundMemories(ctx context.Context, api *server, term *terminal, s v1alpha1.MemorySearchSpec, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	out, err := c.MemorySearches(namespace).Create(ctx, &v1alpha1.MemorySearch{Spec: s}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	list := &v1alpha1.MemoryList{Items: make([]v1alpha1.Memory, 0, len(out.Status.Items))}
	for i := range out.Status.Items {
		list.Items = append(list.Items, out.Status.Items[i].Memory)
	}
	return printFound(term, f, list, "MemoryList", list.Items, []string{"NAME", "AGENT", "SESSION", "STATE", "RECALLED", "CONTENT"}, []string{"TAGS", "SOURCE"}, func(m *v1alpha1.Memory) ([]string, []string) {
		state := "Active"
		switch {
		case m.Status.Deleted:
			state = "Deleted"
		case m.Status.Disabled:
			state = "Disabled"
		}
		return []string{m.Name, m.Spec.AgentName, m.Spec.SessionName, state, strconv.FormatInt(m.Status.RecalledCount, 10), fit(clean(m.Spec.Content), longestText)},
			[]string{strings.Join(m.Spec.Tags, ","), m.Spec.Source}
	})
}

// longestText is how many characters of a text a table shows, as the tables of the server do.
const longestText = 60

// printFound prints what a search found as a list of its kind would be printed.
func printFound[T any](term *terminal, f format, list runtime.Object, kind string, items []T, columns, wide []string, cells func(*T) (own, more []string)) error {
	if f == asName {
		for i := range items {
			own, _ := cells(&items[i])
			if err := term.say("%s.%s/%s", strings.ToLower(strings.TrimSuffix(kind, "List")), v1alpha1.GroupName, own[0]); err != nil {
				return err
			}
		}
		return nil
	}
	if !f.table() {
		list.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
		return term.objectPrinter(f, false).PrintObj(list, term.Out)
	}
	if len(items) == 0 {
		note(term.Err, "nothing found")
		return nil
	}
	whole := f == asWide
	line := func(own, more []string) []string {
		if whole {
			own = append(own, more...)
		}
		for i := range own {
			own[i] = clean(own[i])
		}
		return own
	}
	rows := [][]string{line(columns, wide)}
	for i := range items {
		rows = append(rows, line(cells(&items[i])))
	}
	if whole {
		return term.wholeColumns(rows)
	}
	return term.columns(rows)
}

func proposalList(api *server, term *terminal) *cobra.Command {
	var l listFlags
	var state, query, typ, agent, task string
	states := []string{"pending", "accepted", "rejected", "applied", "archived", "all"}
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List proposals; by default those that wait for a review", Args: cobra.NoArgs}
	l.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&state, "state", string(v1alpha1.ProposalPending), "only in this state; all for every state")
	flags.StringVar(&query, "query", "", "only with all these words in their texts")
	flags.StringVar(&typ, "type", "", "only of this type")
	flags.StringVar(&agent, "agent-name", "", "only for this agent")
	flags.StringVar(&task, "task-name", "", "only about this task")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "status" { // as other clients call it
			name = "state"
		}
		return pflag.NormalizedName(name)
	})
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--state", state, states...); err != nil {
			return err
		}
		if state == "all" {
			state = ""
		}
		if query != "" {
			if err := l.searchable(); err != nil {
				return err
			}
			return foundProposals(cmd.Context(), api, term, v1alpha1.MemoryProposalSearchSpec{
				Query: query, Type: v1alpha1.MemoryProposalType(typ), AgentName: agent, TaskName: task, Status: v1alpha1.MemoryProposalState(state), Limit: int32(min(l.limit, mostProposals)),
			}, *f)
		}
		for _, only := range [][2]string{{"status.state", state}, {"spec.type", typ}, {"spec.agentName", agent}, {"spec.taskName", task}} {
			if only[1] != "" {
				l.fields = strings.Trim(l.fields+","+only[0]+"="+only[1], ",")
			}
		}
		return printList(cmd.Context(), api, term, "memoryproposals", &l, *f)
	}
	return cmd
}

// mostProposals is how many proposals a search finds at most.
const mostProposals = 500

// foundProposals prints the proposals that a search finds.
func foundProposals(ctx context.Context, api *server, term *terminal, s v1alpha1.MemoryProposalSearchSpec, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	out, err := c.MemoryProposalSearches(namespace).Create(ctx, &v1alpha1.MemoryProposalSearch{Spec: s}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	list := &v1alpha1.MemoryProposalList{Items: out.Status.Items}
	return printFound(term, f, list, "MemoryProposalList", list.Items, []string{"NAME", "STATE", "TYPE", "TITLE", "AGENT", "TASK"}, []string{"MEMORY", "REVIEWER"}, func(p *v1alpha1.MemoryProposal) ([]string, []string) {
		return []string{p.Name, string(p.Status.State), string(p.Spec.Type), fit(clean(p.Spec.Title), longestText), p.Spec.AgentName, p.Spec.TaskName},
			[]string{p.Status.MemoryName, p.Status.Reviewer}
	})
}
