// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func taskLogs(api *server, term *terminal) *cobra.Command {
	var follow, raw bool
	var tail int
	cmd := &cobra.Command{Use: "logs TASK", Aliases: []string{"log"}, Short: "Print the log of a task", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks")}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the task ends, across cut connections")
	cmd.Flags().IntVar(&tail, "tail", 0, "only this many of the last lines; 0 is all")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the bytes as they are, also those that a terminal obeys")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if follow && tail > 0 {
			return errors.New("--tail cannot be combined with --follow")
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		l := &logReader{client: c, namespace: namespace, task: args[0], out: term.Out, follow: follow, tail: tail}
		if raw {
			l.out = term.raw
		}
		if !follow {
			return l.read(cmd.Context())
		}
		task, err := c.Tasks(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.uid = task.UID
		err = persist(cmd.Context(), term.clock, func() int64 { return l.printed }, l.toEnd)
		return lost(err, "the log of "+l.task)
	}
	return cmd
}

// logReader prints the log of a task. A log only grows, so what was printed is skipped when it is read again.
type logReader struct {
	client          typed.CoreV1alpha1Interface
	namespace, task string
	uid             types.UID
	out             io.Writer
	follow          bool
	tail            int
	printed         int64 // bytes
}

// toEnd prints the log until the task has ended. A server that stops ends its answers as it does at the end of a task.
// What it sent is therefore the whole log only if the task had ended when the answer began.
func (l *logReader) toEnd(ctx context.Context) error {
	for {
		task, err := l.client.Tasks(l.namespace).Get(ctx, l.task, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if task.UID != l.uid {
			return &outcome{codeCancelled, fmt.Sprintf("task %s was deleted", l.task)}
		}
		at := l.printed
		if err := l.read(ctx); err != nil {
			return err
		}
		if task.Status.Phase.Terminal() {
			return nil
		}
		if l.printed == at {
			return errCut // wait a little before the next look
		}
	}
}

// read prints what the server sends of the log and was not printed before.
func (l *logReader) read(ctx context.Context) error {
	r := l.client.RESTClient().Get().Namespace(l.namespace).Resource("tasks").Name(l.task).SubResource("log").Param("follow", strconv.FormatBool(l.follow))
	if l.tail > 0 {
		r = r.Param("tailLines", strconv.Itoa(l.tail))
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	if _, err := io.CopyN(io.Discard, body, l.printed); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	w := &counted{out: l.out}
	_, err = io.Copy(w, body)
	l.printed += w.n
	if w.err != nil {
		return final(w.err)
	}
	return err
}

// counted counts what was written, and keeps the error of its writer apart from those of a reader.
type counted struct {
	out io.Writer
	n   int64
	err error
}

// Write writes to the writer.
func (c *counted) Write(p []byte) (n int, err error) {
	n, c.err = c.out.Write(p)
	c.n += int64(n)
	return n, c.err
}
