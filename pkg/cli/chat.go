// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxTyped is the longest message that is read from standard input, in bytes.
const maxTyped = 256 << 10

// conversation is a chat on the command line.
type conversation struct {
	*server
	*terminal
	client    rest.Interface
	namespace string
	spec      v1alpha1.ChatSpec // of the next turn, except its message
	quiet     bool
	detach    bool  // begin a background turn and do not wait for it
	after     int64 // the last frame of the turn that was shown
	lineOpen  bool  // the last thing written to Out was text without a line end
}

func chatCommand(api *server, term *terminal) *cobra.Command {
	c := &conversation{server: api, terminal: term}
	var temperature float64
	var tokens int64
	var systemFile string
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Talk to the orchestrator, which creates and follows tasks for you",
		Long: `Talk to the orchestrator, a model that creates and follows tasks for you, with your permissions and no others.

With a message, there is one turn, and the answer is printed. Without one, lines are read from the terminal until the
end of the input (Ctrl-D), or the whole of standard input is one message. Calls of tools are shown on standard error.
Ctrl-C cancels the turn. Tasks that it created go on.

With --background, the turn belongs to the server: it goes on when this command ends, when the connection is cut and when
the server restarts. Ctrl-C then only ends this command, and 'platform chat attach SESSION' shows the turn again.`,
		Example: `  platform chat "Which tasks failed today, and why?"
  platform chat --session chat-session-0123456789abcdef
  platform chat attach "$(platform chat --detach 'Update every agent to the new model')"
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
	f.BoolVar(&c.spec.Background, "background", false, "let the turn go on when this command ends or is cut off")
	f.BoolVar(&c.detach, "detach", false, "begin a turn in the background, print the name of its session and do not wait for the answer")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 0 && len(args) < 3 && len(cmd.SuggestionsFor(args[0])) > 0 { // a misspelt command must not become a message
			return fmt.Errorf("%w Use standard input to send it to the model", unknownCommand(cmd, args[0]))
		}
		if f.Changed("temperature") {
			c.spec.Temperature = &temperature
		}
		if f.Changed("max-tokens") {
			c.spec.MaxTokens = &tokens
		}
		if systemFile != "" {
			text, err := term.readFile(systemFile)
			if err != nil {
				return fmt.Errorf("--system-prompt: %w", err)
			}
			c.spec.SystemPrompt = string(text)
		}
		c.spec.Background = c.spec.Background || c.detach
		if err := c.connect(); err != nil {
			return err
		}
		return c.talk(cmd.Context(), strings.Join(args, " "))
	}
	cmd.AddCommand(attachCommand(api, term), cancelTurnCommand(api, term))
	return cmd
}

func attachCommand(api *server, term *terminal) *cobra.Command {
	c := &conversation{server: api, terminal: term}
	cmd := &cobra.Command{
		Use:   "attach SESSION",
		Short: "Follow the newest background turn of a session to its end",
		Long: `Follow the newest background turn of a session to its end, from its beginning or after a given frame. This works from
any machine and for several people at once; each sees the same. Connections that are cut are opened again.

Ctrl-C ends this command, and the turn goes on. 'platform chat cancel SESSION' ends the turn.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("sessions"),
	}
	f := cmd.Flags()
	f.BoolVarP(&c.quiet, "quiet", "q", false, "do not show calls of tools")
	f.Int64Var(&c.after, "after", 0, "only frames after this one; 0 shows the turn from its beginning")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.after < 0 {
			return errors.New("--after: must be 0 or more")
		}
		if err := c.connect(); err != nil {
			return err
		}
		c.spec.SessionID, c.spec.Background = args[0], true
		return c.follow(cmd.Context())
	}
	return cmd
}

func cancelTurnCommand(api *server, term *terminal) *cobra.Command {
	c := &conversation{server: api, terminal: term}
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "End the turn that runs in a session",
		Long: `End the turn that runs in a session, whoever began it, even one in the background. What was said before stays, and the
session can be used again. It does nothing if no turn runs.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("sessions"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.connect(); err != nil {
			return err
		}
		return c.client.Post().Namespace(c.namespace).Resource("sessions").Name(args[0]).SubResource("cancel").Do(cmd.Context()).Error()
	}
	return cmd
}

// connect makes the client.
func (c *conversation) connect() error {
	typed, namespace, err := c.server.client()
	if err != nil {
		return err
	}
	c.client, c.namespace = typed.RESTClient(), namespace
	return nil
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
	case c.detach:
		return errors.New("--detach needs a message as argument")
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
