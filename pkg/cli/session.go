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

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func sessionCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "session", Aliases: []string{"sessions"}, Short: "Conversations that tasks share"}
	cmd.AddCommand(listOf(api, term, "sessions", "List sessions"), getOf(api, term, "SESSION", "sessions", "Show sessions"), sessionTranscript(api, term),
		eventsOf(api, term, "sessions", "events SESSION", "Print the events of all tasks of a session"), sessionWatch(api, term), sessionDelete(api, term))
	return cmd
}

func sessionTranscript(api *server, term *terminal) *cobra.Command {
	var newest int64
	cmd := &cobra.Command{Use: "transcript SESSION", Short: "Print what was said in a session", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("sessions")}
	cmd.Flags().Int64Var(&newest, "newest", 0, "only this many of the newest messages; 0 is all")
	f := addOutput(cmd, asTable, asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return printTranscript(cmd.Context(), api, term, args[0], newest, *f)
	}
	return cmd
}

// printTranscript prints messages page by page; as JSON it prints one object per
// line.
func printTranscript(ctx context.Context, api *server, term *terminal, session string, newest int64, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	for token := ""; ; {
		r := c.RESTClient().Get().Namespace(namespace).Resource("sessions").Name(session).SubResource("transcript").Param("limit", "500")
		if newest > 0 {
			r = r.Param("newest", strconv.FormatInt(newest, 10))
		}
		if token != "" {
			r = r.Param("continue", token)
		}
		page := &v1alpha1.SessionTranscript{}
		if err := r.Do(ctx).Into(page); err != nil {
			return err
		}
		if page.Truncated && token == "" && f == asTable {
			if err := term.say("%s", term.paint(yellow, "older messages were left out")); err != nil {
				return err
			}
		}
		for i := range page.Items {
			if err := printMessage(term, &page.Items[i], f); err != nil {
				return err
			}
		}
		if token = page.Continue; token == "" || newest > 0 {
			return nil
		}
	}
}

func printMessage(term *terminal, m *v1alpha1.SessionMessage, f format) error {
	if f == asJSON {
		return json.NewEncoder(term.Out).Encode(m)
	}
	style := cyan
	if m.Role == v1alpha1.RoleUser {
		style = bold
	}
	var text strings.Builder
	for line := range strings.Lines(m.Content) {
		text.WriteString("  " + strings.TrimRight(clean(line), " ") + "\n")
	}
	_, err := fmt.Fprintf(term.Out, "%s %s\n%s", term.paint(style, string(m.Role)), term.paint(dim, m.Timestamp.Local().Format("2006-01-02 15:04:05")+" "+m.SourceRef), text.String())
	return err
}

func sessionWatch(api *server, term *terminal) *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use: "watch SESSION...", Aliases: []string{"follow"}, Short: "Follow the events of all tasks of sessions", Args: cobra.MinimumNArgs(1),
		Long: "Follow the events of all tasks of a session, or of several, until all of these are deleted or you stop.", ValidArgsFunction: api.namesOf("sessions"),
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only events after this cursor")
	f := addOutput(cmd, asTable, asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			if cmd.Flags().Changed("after") {
				return errors.New("--after: a cursor belongs to one session and cannot be combined with several")
			}
			return followSeveral(cmd.Context(), api, term, nil, args, nil, *f)
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		lines := &timeline{terminal: term, out: term.Out, session: true}
		s := &stream{
			client: c.RESTClient(), clock: term.clock, namespace: namespace, resource: "sessions", name: args[0], after: after,
			event: func(e *v1alpha1.ExecutionEvent) error { return printEvent(term, lines, e, *f) }, gap: lines.gap,
		}
		if _, err = s.follow(cmd.Context()); err == nil {
			note(term.Err, "session "+args[0]+" was deleted")
		}
		return err
	}
	return cmd
}

func sessionDelete(api *server, term *terminal) *cobra.Command {
	cmd := eachNamed(api, "delete SESSION...", "Remove sessions and what was said in them", "sessions", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		if err := c.Sessions(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return term.say("session %s deleted", name)
	})
	cmd.Aliases = []string{"rm"}
	return cmd
}
