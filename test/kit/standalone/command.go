// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/test/kit"
)

// Command runs the program platform as the administrator. It returns what it printed and its exit code.
func Command(ctx context.Context, kubeconfig string, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = cli.Main(ctx, "platform", append([]string{"--kubeconfig", kubeconfig}, args...), cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

// Watching starts `platform ARGS -o json`, which complains to errs, and returns a func that reads the next event that it prints,
// and one that reads the rest and returns the exit code.
func (p *Platform) Watching(errs io.Writer, args ...string) (next func() *v1alpha1.ExecutionEvent, rest func() ([]v1alpha1.ExecutionEvent, int)) {
	p.T.Helper()
	in, out := io.Pipe()
	code := make(chan int, 1)
	ctx, cancel := context.WithTimeout(p.T.Context(), kit.Patience)
	p.T.Cleanup(cancel)
	go func() {
		all := append(append([]string{"--kubeconfig", p.Kubeconfig}, args...), "-o", "json")
		code <- cli.Main(ctx, "platform", all, cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
		_ = out.Close() // a pipe: it cannot fail
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	next = func() *v1alpha1.ExecutionEvent {
		if !lines.Scan() {
			return nil
		}
		e := &v1alpha1.ExecutionEvent{}
		if err := json.Unmarshal(lines.Bytes(), e); err != nil {
			p.T.Error(err)
		}
		return e
	}
	return next, func() (all []v1alpha1.ExecutionEvent, exit int) {
		for e := next(); e != nil; e = next() {
			all = append(all, *e)
		}
		return all, <-code
	}
}
