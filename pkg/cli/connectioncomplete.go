// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const completeHelp = `Finish what you began with 'platform connection connect', where no page of the console does.

The server sends the browser on to an address that ends with #completion=TOKEN. Give this command the whole address, or the token
alone, on standard input: arguments could be read by others, and would stay in the history of the shell. On a terminal you are
asked for it. The token counts once, within ten minutes, and for you alone.`

// maxPasted bounds what is read of standard input, in bytes, and maxCompletion a completion token, in characters.
const maxPasted, maxCompletion = 16 << 10, 256

func connectionComplete(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "complete NAME", Short: "Finish linking an account with the address to which the browser was sent", Long: completeHelp, Args: cobra.ExactArgs(1),
		Example:           "  platform connection complete github-0123456789ab\n  xclip -o | platform connection complete github-0123456789ab",
		ValidArgsFunction: api.names(connections),
	}
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		text, err := term.pasted(cmd.Context(), "Paste the address to which the browser was sent, or its completion token:")
		if err != nil {
			return err
		}
		completion, err := completionOf(text, namespace, args[0])
		if err != nil {
			return err
		}
		done := &v1alpha1.ConnectionCompletion{}
		err = c.RESTClient().Post().Namespace(namespace).Resource(connections).Name(args[0]).SubResource("complete").
			Body(&v1alpha1.ConnectionCompletion{Spec: v1alpha1.ConnectionCompletionSpec{Completion: completion}}).Do(cmd.Context()).Into(done)
		if err != nil {
			return err
		}
		if done.Status.Connection == nil {
			return errors.New("the server answered without the connection")
		}
		return printLinked(term, done.Status.Connection, *f)
	}
	return cmd
}

// pasted reads a line of standard input. On a terminal it asks for it.
func (term *terminal) pasted(ctx context.Context, question string) (string, error) {
	if term.Ask {
		if _, err := io.WriteString(term.Err, question+" "); err != nil {
			return "", err
		}
	}
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(term.In, maxPasted)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-read:
		return strings.TrimSpace(a.line), a.err
	}
}

// completionToken matches the form of a completion token.
var completionToken = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// completionOf returns the completion token in a text: the text itself, or an address to which the server sent the browser for that
// connection. No error repeats the text.
func completionOf(text, namespace, name string) (string, error) {
	if text == "" {
		return "", errors.New("there is nothing on standard input; give the address to which the browser was sent, or its completion token")
	}
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return "", errors.New("the text is not an address; copy all of what the browser shows as its address")
		}
		q := u.Query()
		if why := q.Get("reason"); why != "" {
			return "", fmt.Errorf("the address says that the consent failed (%s); connect again", clean(fit(why, 60)))
		}
		for _, part := range []struct{ what, want string }{{"namespace", namespace}, {"connection", name}} {
			if of := q.Get(part.what); of != "" && of != part.want {
				return "", fmt.Errorf("the address is for %s %s, and not for %s", part.what, clean(fit(of, 80)), part.want)
			}
		}
		values, err := url.ParseQuery(u.Fragment)
		if err != nil || values.Get("completion") == "" {
			return "", errors.New("the address has no completion token; it ends with #completion=TOKEN")
		}
		text = values.Get("completion")
	}
	if len(text) > maxCompletion || !completionToken.MatchString(text) {
		return "", errors.New("the text is neither a completion token nor the address to which the browser was sent")
	}
	return text, nil
}
