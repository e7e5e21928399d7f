// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs the command without a server.
func run(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = Main(t.Context(), "platform", append(args, "--kubeconfig", none), Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

// TestUsageErrorsFail checks that unknown commands and flags never look like
// success.
func TestUsageErrorsFail(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"frobnicate", `platform: unknown command "frobnicate" for "platform"; "platform --help" lists the commands`},
		{"taks list", `platform: unknown command "taks" for "platform"; did you mean "platform task"?`},
		{"task aprove rotate", `platform: unknown command "aprove" for "platform task"; did you mean "platform task approve"?`},
		{"task aprove rotate --reason fine", `platform: unknown command "aprove" for "platform task"; did you mean "platform task approve"?`},
		{"task aprove --help", `platform: unknown command "aprove" for "platform task"; did you mean "platform task approve"?`},
		{"approve rotate", `platform: unknown command "approve" for "platform"; did you mean "platform approval approve" or "platform task approve"?`},
		{"session frobnicate", `platform: unknown command "frobnicate" for "platform session"; "platform session --help" lists the commands`},
		{"approval view", `platform: unknown command "view" for "platform approval"; "platform approval --help" lists the commands`},
		{"completion tcsh", `platform: unknown command "tcsh" for "platform completion"; did you mean`},
		{"help frobnicate", `platform: unknown command "frobnicate" for "platform"`},
		{"help task frobnicate", `platform: unknown command "frobnicate" for "platform task"`},
		{"task --frobnicate", `platform: unknown flag: --frobnicate; "platform task --help" lists the flags`},
		{"task get x --frobnicate", `platform: unknown flag: --frobnicate; "platform task get --help" lists the flags`},
		{"task get", `platform: an argument is missing; usage: platform task get TASK... [flags]`},
		{"task approve", `platform: an argument is missing; usage: platform task approve TASK [APPROVAL] [flags]`},
		{"task approve a b c", `platform: unexpected argument "c"; usage: platform task approve TASK [APPROVAL] [flags]`},
		{"task list x", `platform: unexpected argument "x"; usage: platform task list [flags]`},
		{"task list -o xml", `platform: -o: "xml" is not one of table, wide, json, yaml, name`},
		{"task list --status open", `platform: --status: "open" is not one of Pending, Running, Finalizing, Succeeded, Failed, Scheduled, Cancelled`},
		{"approval list --state open", `platform: --state: "open" is not one of pending, approved, declined, expired, cancelled, all`},
	} {
		out, errs, code := run(t, strings.Fields(tc.args)...)
		if code != codeError || out != "" || !strings.HasPrefix(errs, tc.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("platform %s: exit code %d\nstdout: %s\nstderr: %s\nwant:   %s", tc.args, code, out, errs, tc.want)
		}
	}
}

// TestHelpIsOutput checks that requested help is printed on standard output.
func TestHelpIsOutput(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"", "Usage:\n  platform [command]\n"},
		{"--help", "Usage:\n  platform [command]\n"},
		{"task", "Usage:\n  platform task [command]\n"},
		{"help task", "Usage:\n  platform task [command]\n"},
		{"help task decline", "Aliases:\n  decline, deny, reject\n"},
		{"task deny --help", "Usage:\n  platform task decline TASK [APPROVAL] [flags]\n"},
		{"task reject --help", "Usage:\n  platform task decline TASK [APPROVAL] [flags]\n"},
	} {
		out, errs, code := run(t, strings.Fields(tc.args)...)
		if code != codeSucceeded || errs != "" || !strings.Contains(out, tc.want) {
			t.Errorf("platform %s: exit code %d\nstdout: %s\nstderr: %s", tc.args, code, out, errs)
		}
	}
}
