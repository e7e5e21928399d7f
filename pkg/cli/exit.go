// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Exit codes. They distinguish how a task ended from whether the command
// worked.
const (
	codeSucceeded = 0
	codeError     = 1 // wrong usage, or the server refused
	codeFailed    = 2 // the task failed
	codeCancelled = 3 // the task was cancelled or deleted
	codeUnknown   = 4 // the end is unknown: the connection was cut, or time ran out
	codeInterrupt = 130
)

const exitCodes = `Commands that follow a task report the outcome in their exit code:
  0    it succeeded
  1    the command itself failed
  2    the task failed
  3    the task was cancelled or deleted
  4    unknown: the stream was cut and could not be resumed, or time ran out`

var errNoConfig = errors.New("there is no kubeconfig: set KUBECONFIG or --kubeconfig; platform-standalone writes one into its data folder")

// outcome describes the end of a task as an error.
type outcome struct {
	code int
	text string
}

// Error returns a text for people.
func (o *outcome) Error() string { return o.text }

// ended returns the outcome of a task whose stream ended with this type; nil if
// the task succeeded.
func ended(task string, last v1alpha1.EventType, why string) error {
	if why != "" {
		why = ": " + why
	}
	switch last {
	case v1alpha1.EventTaskSucceeded:
		return nil
	case v1alpha1.EventTaskFailed:
		return &outcome{codeFailed, fmt.Sprintf("task %s failed%s", task, why)}
	case v1alpha1.EventTaskCancelled:
		return &outcome{codeCancelled, fmt.Sprintf("task %s was cancelled%s", task, why)}
	case event.TaskDeleted:
		return &outcome{codeCancelled, fmt.Sprintf("task %s was deleted", task)}
	}
	return &outcome{codeUnknown, fmt.Sprintf("the end of task %s is not known", task)}
}

func exitCode(ctx context.Context, err error) int {
	var o *outcome
	switch {
	case err == nil:
		return codeSucceeded
	case errors.As(err, &o):
		return o.code
	case ctx.Err() != nil:
		return codeInterrupt
	}
	return codeError
}

// silent reports whether an error needs no message: the user interrupted the
// command, or the message was already printed.
func silent(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, errSaid) }

// explain returns an error without the wrapping that the client adds.
func explain(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
