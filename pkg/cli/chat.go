// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
)

// maxShown is how many characters of arguments and results are shown.
const maxShown = 160

// maxTyped is the longest message that is read from standard input, in bytes.
const maxTyped = 256 << 10

// conversation is a chat on the command line.
type conversation struct {
	*app
	client    rest.Interface
	namespace string
	spec      v1alpha1.ChatSpec // of the next turn, but for its message
	quiet     bool
	lineOpen  bool // the last thing written to Out was text without a line end
}

func chatCommand(a *app) *cobra.Command {
	c := &conversation{app: a}
	var temperature float64
	var tokens int64
	var systemFile string
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Talk to the orchestrator, which creates and follows tasks for you",
		Long: `Talk to the orchestrator, a model that creates and follows tasks for you, with your permissions and no others.

With a message, there is one turn, and the answer is printed. Without one, lines are read from the terminal until the
end of the input (Ctrl-D), or the whole of standard input is one message. Calls of tools are shown on standard error.
Ctrl-C cancels the turn. Tasks that it created go on.`,
		Example: `  platform chat "Which tasks failed today, and why?"
  platform chat --session chat-session-0123456789abcdef
  git diff | platform chat --system-prompt instructions.md`,
		Args: cobra.ArbitraryArgs,
	}
	f := cmd.Flags()
	f.StringVar(&c.spec.SessionID, "session", "", "session to continue; default: a new one")
	f.StringVar(&c.spec.Provider, "provider", "", "Provider that answers; default: that of the agent, then that of the server")
	f.StringVar(&c.spec.Model, "model", "", "model that answers")
	f.StringVar(&c.spec.AgentRef, "agent", "", "Agent that supplies provider, model and temperature")
	f.StringVar(&systemFile, "system-prompt", "", "file with instructions to append to those of the orchestrator; - is standard input")
	f.Float64Var(&temperature, "temperature", 0, "sampling temperature, from 0 to 2")
	f.Int64Var(&tokens, "max-tokens", 0, "most tokens of one answer of the model")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "do not show calls of tools")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if f.Changed("temperature") {
			c.spec.Temperature = &temperature
		}
		if f.Changed("max-tokens") {
			c.spec.MaxTokens = &tokens
		}
		if systemFile != "" {
			text, err := a.readFile(systemFile)
			if err != nil {
				return fmt.Errorf("--system-prompt: %w", err)
			}
			c.spec.SystemPrompt = string(text)
		}
		typed, namespace, err := a.client()
		if err != nil {
			return err
		}
		c.client, c.namespace = typed.RESTClient(), namespace
		return c.talk(cmd.Context(), strings.Join(args, " "))
	}
	return cmd
}

// talk has one turn if there is a message, otherwise as many as the user wants.
func (c *conversation) talk(ctx context.Context, message string) error {
	switch {
	case message != "":
	case !c.Ask:
		text, err := io.ReadAll(io.LimitReader(c.In, maxTyped+1))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if message = strings.TrimSpace(string(text)); message == "" {
			return errors.New("there is no message: give one as argument or on standard input")
		}
	default:
		return c.lines(ctx)
	}
	return c.turn(ctx, message)
}

// lines has a turn for each line that the user types.
func (c *conversation) lines(ctx context.Context) error {
	typed := make(chan string)
	go func() { // ends with the input, or with the process
		defer close(typed)
		in := bufio.NewScanner(c.In)
		in.Buffer(nil, maxTyped)
		for in.Scan() {
			select {
			case typed <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		_, _ = fmt.Fprint(c.Err, c.paint(bold, "> "))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, more := <-typed:
			if !more {
				note(c.Err, "")
				return nil
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			if err := c.turn(ctx, line); err != nil {
				if ctx.Err() != nil || !recoverable(err) {
					return err
				}
				note(c.Err, "platform: "+explain(err))
			}
		}
	}
}

// recoverable reports whether the user may say something else after an error: the server refused or failed this turn.
func recoverable(err error) bool {
	var o *outcome
	return errors.As(err, &o) || temporary(err)
}

// chatFrame is the data of one event of a stream.
type chatFrame struct {
	SessionID string                 `json:"sessionId"`
	Content   string                 `json:"content"`
	Restart   bool                   `json:"restart"`
	ToolCall  *v1alpha1.ChatToolCall `json:"toolCall"`
	Outcome   v1alpha1.ChatOutcome   `json:"outcome"`
	Usage     *v1alpha1.ChatUsage    `json:"usage"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// turn says something and prints the answer as it arrives. When ctx ends, the connection does, and the server cancels the
// turn.
func (c *conversation) turn(ctx context.Context, message string) error {
	said := v1alpha1.Chat{Spec: c.spec}
	said.APIVersion, said.Kind = v1alpha1.SchemeGroupVersion.String(), "Chat"
	said.Spec.Message = message
	body, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	stream, err := c.client.Post().Namespace(c.namespace).Resource("chats").SetHeader("Accept", sse.ContentType).
		SetHeader("Content-Type", "application/json").Body(body).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // it was only read
	in := sse.NewReader(stream, sse.Options{})
	for {
		e, err := in.Next()
		if err != nil {
			c.endLine()
			if ctx.Err() != nil {
				c.resume()
				return ctx.Err()
			}
			return &outcome{codeUnknown, "the answer was cut; what was done is not known: see 'platform task list'"}
		}
		var f chatFrame
		if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
			return fmt.Errorf("stream: event %s: %w", e.ID, err)
		}
		if done, err := c.show(e.Type, &f); done || err != nil {
			return err
		}
	}
}

// show prints one event and reports whether it was the last.
func (c *conversation) show(kind string, f *chatFrame) (done bool, err error) {
	if f.SessionID != "" && c.spec.SessionID == "" {
		c.spec.SessionID = f.SessionID
		if !c.quiet {
			note(c.Err, c.paint(dim, "session "+clean(f.SessionID)))
		}
	}
	switch kind {
	case "message":
		if f.Restart {
			c.endLine()
			note(c.Err, c.paint(yellow, "the model begins its answer again"))
		}
		if f.Content != "" {
			_, err = io.WriteString(c.Out, printable(f.Content))
			c.lineOpen = !strings.HasSuffix(f.Content, "\n")
		}
	case "tool_call", "tool_result":
		c.endLine()
		c.showCall(kind, f.ToolCall)
	case "error":
		c.endLine()
		code := codeFailed
		if f.Error == nil {
			return true, &outcome{codeUnknown, "the turn ended for a reason that the server did not name"}
		}
		if f.Error.Code == "cancelled" {
			code = codeCancelled
		}
		return true, &outcome{code, fmt.Sprintf("%s (%s)", clean(f.Error.Message), clean(f.Error.Code))}
	case "done":
		c.endLine()
		if f.Outcome == v1alpha1.ChatIterationLimit {
			note(c.Err, c.paint(yellow, "the turn used up its iterations; this is a summary"))
		}
		return true, nil
	}
	return false, err
}

func (c *conversation) showCall(kind string, call *v1alpha1.ChatToolCall) {
	if c.quiet || call == nil {
		return
	}
	mark, text := "→ ", ""
	if call.Args != nil {
		text = string(call.Args.Raw)
	}
	color := cyan
	if kind == "tool_result" {
		mark, color = "← ", green
		var r struct {
			Success   bool   `json:"success"`
			Error     string `json:"error"`
			ErrorType string `json:"errorType"`
		}
		if call.Result != nil {
			text = string(call.Result.Raw)
			if json.Unmarshal(call.Result.Raw, &r) == nil && !r.Success {
				color, text = red, r.ErrorType+": "+r.Error
			}
		}
	}
	note(c.Err, c.paint(color, mark+clean(call.Name))+" "+c.paint(dim, fit(clean(text), maxShown)))
}

// endLine ends a line of the answer, so that what comes next begins on its own.
func (c *conversation) endLine() {
	if c.lineOpen {
		_, _ = io.WriteString(c.Out, "\n")
		c.lineOpen = false
	}
}

// resume tells the user how to go on after an interruption.
func (c *conversation) resume() {
	if c.spec.SessionID != "" {
		note(c.Err, "cancelled; to go on: platform chat --session "+clean(c.spec.SessionID))
	}
}

// printable makes the text of a model safe to show on a terminal. Lines and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
			return r
		}
		return ' '
	}, text)
}
