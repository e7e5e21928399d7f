// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"io"
	"os"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/program"
)

// prepared returns the report of the init container that prepared the repository. Its folder cannot be written in this container, and
// there is no worker if the preparation failed.
func prepared(file string) (*workspace.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "the report of the init container %s: %w", workspace.ContainerName, err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, program.MaxAnswer))
	var answer workspace.Answer
	if err != nil || json.Unmarshal(raw, &answer) != nil || answer.Report == nil {
		return nil, runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "the init container %s left no report", workspace.ContainerName)
	}
	return answer.Report, nil
}
