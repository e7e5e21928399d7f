// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/fault"
)

// InPod is Main for the init container of a Pod. A report goes to the file that the worker reads; a failure goes to the termination
// log, and is the error that is returned.
func InPod(ctx context.Context, getenv func(string) string) error {
	var o workspace.Order
	if json.Unmarshal([]byte(getenv(runspec.EnvWorkspaceOrder)), &o) != nil {
		return fmt.Errorf("%s has no order: the program is started by the platform's controller", runspec.EnvWorkspaceOrder)
	}
	if file := getenv(runspec.EnvWorkspaceTokenFile); file != "" {
		token, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the credential: %w", err)
		}
		o.Token = string(token)
	}
	report, err := Do(ctx, o)
	if err != nil {
		f := fault.Of(err)
		if err := os.WriteFile(getenv(runspec.EnvTerminationLog), termination(*f), 0o600); err != nil {
			return fmt.Errorf("write the termination message: %w", err)
		}
		return f
	}
	raw, err := json.Marshal(workspace.Answer{Report: report})
	if err == nil {
		err = os.WriteFile(getenv(runspec.EnvWorkspaceAnswer), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// termination returns a failure as an Answer that the kubelet does not cut.
func termination(f workspace.FailedError) []byte {
	for keep := workspace.MaxTermination; ; keep /= 2 {
		f.Message = clip.Marked(f.Message, keep)
		raw, err := json.Marshal(workspace.Answer{Failure: &f})
		if err == nil && len(raw) <= workspace.MaxTermination || keep == 0 { // quoting can make a text six times as long
			return raw
		}
	}
}
