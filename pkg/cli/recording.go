// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func taskShow(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show TASK SEQ", Short: "Print what was said at an event of a task", Args: cobra.ExactArgs(2), ValidArgsFunction: api.names("tasks"),
		Long: "Print what is recorded beside an event of a task: of a model request the conversation as the model saw it, of an answer the text and " +
			"the calls, of a tool call its arguments, of its end what the tool returned. SEQ is the number of the event (`platform task events TASK`).",
	}
	f := addOutput(cmd, "text", asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		seq, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || seq < 1 {
			return fmt.Errorf("SEQ: %q is not the number of an event", args[1])
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		r, err := recordingOf(cmd.Context(), c, namespace, args[0], nil, strconv.FormatInt(seq, 10))
		if err != nil {
			return err
		}
		if *f == asJSON || *f == asYAML {
			return term.write(r, *f)
		}
		for i := range r.Entries {
			if err := printEntry(term.Out, &r.Entries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// usageShow prints what is recorded of a request of a chat or of a vendor's API.
func usageShow(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show REQUEST", Short: "Print what was said in a request of a chat or of a vendor's API", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("usagemeasurements"),
		Long: "Print what is recorded of a request to a model: the conversation as the model saw it, and its answer. REQUEST is a name of\n" +
			"`platform usage requests`. Requests are recorded in namespaces with the label " + v1alpha1.LabelRecordRequests + "=Full (or Digests).\n" +
			"What tasks say is recorded beside their events (`platform task show`).",
	}
	f := addOutput(cmd, "text", asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		var r v1alpha1.RequestRecording
		err = c.RESTClient().Get().Namespace(namespace).Resource("usagemeasurements").Name(args[0]).SubResource("recording").Do(cmd.Context()).Into(&r)
		if err != nil {
			return err
		}
		if *f == asJSON || *f == asYAML {
			r.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("RequestRecording"))
			return term.write(&r, *f)
		}
		if err := printTools(term.Out, r.Tools); err != nil {
			return err
		}
		return printConversation(term.Out, append(slices.Clip(r.Conversation), partsOf(r.Answer)...))
	}
	return cmd
}

func taskTranscript(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "transcript TASK", Short: "Print what a task and its model said, with calls and results", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Long: "Print the conversation of the newest attempt of a task: what the model was asked last, and what it answered.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		page, err := recordingOf(cmd.Context(), c, namespace, args[0], map[string]string{"limit": "1"})
		if err != nil {
			return err
		}
		if f := page.ForkedFrom; f != nil {
			note(term.Err, fmt.Sprintf("this is a fork: what was said before is recorded of task %s, up to event %d", clean(f.Task), f.Seq))
		}
		if len(page.Entries) == 0 {
			note(term.Err, "nothing of this task is recorded")
			return nil
		}
		said, err := transcriptOf(cmd.Context(), c, namespace, args[0])
		if err != nil {
			return err
		}
		_, err = io.WriteString(term.Out, said)
		return err
	}
	return cmd
}

func taskSearch(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "search TASK TEXT", Short: "Find where a text was said in a task", Args: cobra.ExactArgs(2), ValidArgsFunction: api.names("tasks"),
		Long: "Print the events of a task with which a text came: in what the model was told or answered, in the arguments of a call, or in what a tool " +
			"returned. Upper and lower case do not matter. `platform task show TASK SEQ` prints all of an event.",
	}
	f := addOutput(cmd, "text", asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		all := v1alpha1.TaskRecording{Entries: []v1alpha1.RecordedEntry{}}
		all.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("TaskRecording"))
		for after := int64(0); ; {
			page, err := recordingOf(cmd.Context(), c, namespace, args[0], map[string]string{"q": args[1], "after": strconv.FormatInt(after, 10)})
			if err != nil {
				return err
			}
			all.ObjectMeta, all.ForkedFrom, all.Entries = page.ObjectMeta, page.ForkedFrom, append(all.Entries, page.Entries...)
			if after = page.Continue; after == 0 {
				break
			}
		}
		if *f == asJSON || *f == asYAML {
			return term.write(&all, *f)
		}
		if len(all.Entries) == 0 {
			note(term.Err, "nobody said that")
		}
		for i := range all.Entries {
			e := &all.Entries[i]
			if _, err := fmt.Fprintf(term.Out, "%d\t%s\t%s\n", e.Seq, e.Type, clean(e.Match)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func taskDiff(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff TASK [TASK]", Short: "Print what a task changed in its repository, or what two tasks said and did differently", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: api.names("tasks"),
		Long: "With one task, print what its run changed in its repository (spec.workspace.intent write) as git does, so that `git apply` takes it.\n\n" +
			"With two tasks, print the differences between their transcripts (`platform task transcript`) in the unified format: what both said, what only the " +
			"first said (-), and what only the second said (+). Exit code 1 means an error, not a difference.",
		Example: "  platform task diff mend-test | git apply\n  platform task diff mend-test mend-test-again",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		if len(args) == 1 {
			return printChanges(cmd.Context(), term, c, namespace, args[0])
		}
		var said [2]string
		for i, task := range args {
			if said[i], err = transcriptOf(cmd.Context(), c, namespace, task); err != nil {
				return err
			}
			if said[i] == "" {
				return fmt.Errorf("nothing of task %s is recorded", task)
			}
		}
		if said[0] == said[1] {
			note(term.Err, "the tasks said and did the same")
			return nil
		}
		_, err = io.WriteString(term.Out, udiff.Unified(args[0], args[1], said[0], said[1]))
		return err
	}
	return cmd
}

// transcriptOf returns the conversation of the newest attempt of a task as text; empty if nothing is recorded.
func transcriptOf(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, task string) (string, error) {
	asked, answered, err := newest(ctx, c, namespace, task)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, seq := range []int64{asked, answered} {
		if seq == 0 {
			continue
		}
		r, err := recordingOf(ctx, c, namespace, task, nil, strconv.FormatInt(seq, 10))
		if err != nil {
			return "", err
		}
		for i := range r.Entries {
			e := &r.Entries[i]
			if err := printConversation(&out, append(e.Conversation, partsOf(e.Message)...)); err != nil {
				return "", err
			}
		}
	}
	return strings.TrimPrefix(out.String(), "\n"), nil
}

// recordingOf reads tasks/recording: a page, or with a seq one event with its content.
func recordingOf(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, task string, params map[string]string, seq ...string) (*v1alpha1.TaskRecording, error) {
	req := c.RESTClient().Get().Namespace(namespace).Resource("tasks").Name(task).Suffix(append([]string{"recording"}, seq...)...)
	for name, value := range params {
		req.Param(name, value)
	}
	var r v1alpha1.TaskRecording
	err := req.Do(ctx).Into(&r)
	r.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("TaskRecording"))
	return &r, err
}

// newest returns the seqs of the last model request of a task and of its answer; 0 where there is none. It reads backwards.
func newest(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, task string) (asked, answered int64, err error) {
	for before := int64(math.MaxInt64); ; {
		page, err := recordingOf(ctx, c, namespace, task, map[string]string{"before": strconv.FormatInt(before, 10)})
		if err != nil {
			return 0, 0, err
		}
		for i := range page.Entries {
			switch e := &page.Entries[i]; e.Type {
			case v1alpha1.EventModelRequestStarted:
				return e.Seq, answered, nil
			case v1alpha1.EventModelRequestCompleted:
				answered = max(answered, e.Seq)
			}
		}
		if before = page.PrevSeq; before == 0 {
			return 0, answered, nil
		}
	}
}

func partsOf(p *v1alpha1.RecordedPart) []v1alpha1.RecordedPart {
	if p == nil {
		return nil
	}
	return []v1alpha1.RecordedPart{*p}
}

// printEntry prints what is recorded beside an event. Models and tools wrote it, so control characters are removed.
func printEntry(out io.Writer, e *v1alpha1.RecordedEntry) error {
	about := fmt.Sprintf("%d %s", e.Seq, e.Type)
	if e.Attempt > 0 {
		about += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	if p := e.Parameters; p != nil && p.MaxTokens > 0 {
		about += fmt.Sprintf(", at most %d tokens", p.MaxTokens)
	}
	if _, err := fmt.Fprintln(out, about); err != nil {
		return err
	}
	if err := printTools(out, e.Tools); err != nil {
		return err
	}
	if e.ToolCall != nil {
		return printCall(out, e.ToolCall)
	}
	return printConversation(out, append(slices.Clip(e.Conversation), partsOf(e.Message)...))
}

// printTools prints the names of the tools that a model was offered.
func printTools(out io.Writer, t *v1alpha1.RecordedPart) error {
	if t == nil {
		return nil
	}
	names := make([]string, len(t.Tools))
	for i := range t.Tools {
		names[i] = clean(t.Tools[i].Name)
	}
	if t.Omitted != "" {
		names = []string{omitted(t)}
	}
	_, err := fmt.Fprintf(out, "tools: %s\n", strings.Join(names, ", "))
	return err
}

// printConversation prints messages.
func printConversation(out io.Writer, parts []v1alpha1.RecordedPart) error {
	for i := range parts {
		p := &parts[i]
		if p.Omitted != "" || p.Message == nil {
			role := "message"
			if p.Message != nil {
				role = clean(p.Message.Role)
			}
			if _, err := fmt.Fprintf(out, "\n[%s] %s\n", role, omitted(p)); err != nil {
				return err
			}
			continue
		}
		m := p.Message
		if _, err := fmt.Fprintf(out, "\n[%s]\n%s%s", clean(m.Role), thought(m.Thinking), readable(m.Text, "")); err != nil {
			return err
		}
		for _, image := range m.Images {
			if _, err := fmt.Fprintf(out, "(image %s, %d bytes, SHA-256 %.12s)\n", clean(image.MediaType), image.Bytes, clean(image.Digest)); err != nil {
				return err
			}
		}
		for j := range m.ToolCalls {
			if err := printCall(out, &m.ToolCalls[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// thought returns what a model thought, so that it is not taken for what it said.
func thought(text string) string {
	if text == "" {
		return ""
	}
	return "(thinking)\n" + readable(text, "  ")
}

func printCall(out io.Writer, c *v1alpha1.RecordedToolCall) error {
	_, err := fmt.Fprintf(out, "calls %s\n%s", clean(c.Name), readable(c.Arguments, "  "))
	return err
}

// omitted says that the content of a part is not there.
func omitted(p *v1alpha1.RecordedPart) string {
	why := map[string]string{
		"DigestsOnly": "only its digest is kept", "TooLarge": "it was too large to be kept", "LimitReached": "the task had no room left for it",
		"Missing": "it did not arrive",
	}[p.Omitted]
	if why == "" {
		why = "it is not there"
	}
	if p.Digest != "" {
		return fmt.Sprintf("(%s: %d bytes, SHA-256 %.12s)", why, p.Bytes, clean(p.Digest))
	}
	return "(" + why + ")"
}

// readable returns a text in lines that end; a JSON object or list as YAML, in which the lines of a long text are lines.
func readable(text, indent string) string {
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		if y, err := yaml.JSONToYAML([]byte(t)); err == nil {
			text = string(y)
		}
	}
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = indent + clean(line)
	}
	return strings.Join(lines, "\n") + "\n"
}
