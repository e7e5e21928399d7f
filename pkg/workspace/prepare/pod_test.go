// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/test/githost"
)

// TestInPod: the program as an init container takes its credential from a file, and leaves either a report for the worker or a failure,
// which the kubelet can carry as a whole.
func TestInPod(t *testing.T) {
	t.Parallel()
	const token = "rt-0f1e2d3c4b5a69788796"
	h := githost.New(t, token)
	h.Create(t, "r")
	commit := h.Commit(t, "r", "main", map[string]string{"v": "one"})
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, branch, file, reason string }{
		{"prepared", "main", secret, ""},
		{"no credential", "main", "", v1alpha1.ReasonRepositoryNotRead},
		{"a long name", strings.Repeat("\x01", 5000), secret, v1alpha1.ReasonRepositoryNotRead},
	} {
		dir := t.TempDir()
		o := orderFrom(t, h, "r")
		o.Token, o.Branch = "", tc.branch
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		err = InPod(t.Context(), func(name string) string {
			return map[string]string{
				runspec.EnvWorkspaceOrder: string(text), runspec.EnvWorkspaceTokenFile: tc.file,
				runspec.EnvWorkspaceAnswer: filepath.Join(dir, "answer"), runspec.EnvTerminationLog: filepath.Join(dir, "log"),
			}[name]
		})
		answered, _ := os.ReadFile(filepath.Join(dir, "answer"))
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		if strings.Contains(string(answered)+string(said), token) {
			t.Errorf("%s: the token is in %s%s", tc.name, answered, said)
		}
		var answer workspace.Answer
		if tc.reason == "" {
			if err != nil || json.Unmarshal(answered, &answer) != nil || answer.Report == nil || answer.Report.Commit != commit || len(said) > 0 {
				t.Errorf("%s: %v, %s, %s", tc.name, err, answered, said)
			}
			continue
		}
		f, ok := errors.AsType[*workspace.FailedError](err)
		if !ok || f.Reason != tc.reason || len(answered) > 0 || len(said) > workspace.MaxTermination || json.Unmarshal(said, &answer) != nil || answer.Failure == nil ||
			answer.Failure.Reason != tc.reason || answer.Failure.Message == "" {
			t.Errorf("%s: %v, %s, %d bytes: %s", tc.name, err, answered, len(said), said)
		}
	}
}
