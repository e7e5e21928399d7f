// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
)

// record keeps a call of a worker, and appends an event if policies objected to it. sensitive are the secrets that the worker
// named.
func (j *judge) record(ctx context.Context, t *v1alpha1.Task, c *v1alpha1.ToolCall, sensitive []string) error {
	arguments, changed := withoutSecrets(c.Spec.Arguments.Raw, sensitive)
	err := j.tasks.KeepCall(ctx, t, digest(&c.Spec), &v1alpha1.TaskCall{
		Attempt: c.Spec.Task.Attempt, ToolName: c.Spec.ToolName, Kind: c.Spec.Kind, CallID: c.Spec.CallID, Arguments: &apiextensionsv1.JSON{Raw: arguments}, Redacted: changed,
	})
	if err != nil {
		return err
	}
	if len(c.Status.Findings) == 0 {
		return nil
	}
	return j.tasks.Judged(ctx, t, eventOf(t, c))
}

// withoutSecrets returns arguments as they may be stored, and whether anything was removed: of more secrets than a call may
// name, or of what is no JSON without them, everything.
func withoutSecrets(arguments []byte, secrets []string) ([]byte, bool) {
	if len(secrets) > maxSensitive {
		return []byte("{}"), true
	}
	text := redact.KnownOf(secrets...).Remove(string(arguments))
	clean, changed, err := redact.JSON([]byte(text))
	if err != nil {
		return []byte("{}"), true
	}
	return clean, changed || text != string(arguments)
}
