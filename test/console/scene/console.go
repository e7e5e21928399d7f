// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/cli"
)

// Console runs platform console until the end of the test, and returns where it serves, and the secret of its link. The flags
// name a kubeconfig.
func Console(t testing.TB, flags ...string) (base, secret string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := cli.Main(ctx, "platform", append([]string{"console", "--no-open"}, flags...), cli.Streams{In: strings.NewReader(""), Out: out, Err: &errs})
		_ = out.Close()
		done <- code
	}()
	t.Cleanup(func() {
		cancel()
		_ = in.Close()
		if code := <-done; code != 0 {
			t.Errorf("platform console ended with %d: %s", code, errs.String())
		}
	})
	link := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/console/login#once=(\S+)`)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if m := link.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, in) }()
			return m[1], m[2]
		}
	}
	t.Fatal("platform console printed no link")
	return "", ""
}
