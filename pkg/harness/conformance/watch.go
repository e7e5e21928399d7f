// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// watch is a transport that looks for secrets in what comes back.
type watch struct {
	next    http.RoundTripper
	secrets []string
	longest int

	mu    sync.Mutex
	leaks []string
}

func newWatch(next http.RoundTripper, secrets []string) *watch {
	w := &watch{next: next, secrets: secrets}
	for _, s := range secrets {
		w.longest = max(w.longest, len(s))
	}
	return w
}

// RoundTrip makes a request.
func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	what := r.Method + " " + r.URL.Path
	for name, values := range answer.Header {
		w.look([]byte(strings.Join(values, "\n")), "the header "+name+" of "+what)
	}
	answer.Body = &watched{ReadCloser: answer.Body, w: w, what: "the answer to " + what}
	return answer, nil
}

func (w *watch) look(text []byte, where string) {
	for _, s := range w.secrets {
		if bytes.Contains(text, []byte(s)) {
			w.mu.Lock()
			if !slices.Contains(w.leaks, where) {
				w.leaks = append(w.leaks, where)
			}
			w.mu.Unlock()
		}
	}
}

// watched is the body of an answer. tail is the end of what was read, in which a secret may begin.
type watched struct {
	io.ReadCloser
	w    *watch
	what string
	tail []byte
}

// Read reads.
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	text := slices.Concat(b.tail, p[:n])
	b.w.look(text, b.what)
	b.tail = bytes.Clone(text[max(len(text)-b.w.longest, 0):])
	return n, err
}

func secrets() []Check {
	return []Check{{
		Number: "A8", Required: "No answer, event or error has the controller token or the operation key in it.",
		Advice: "Find out how the value got there. Do not give it to the agent in its environment or arguments, and do not repeat requests in errors.",
		run: func(_ context.Context, p *probe) error {
			p.watch.mu.Lock()
			defer p.watch.mu.Unlock()
			if len(p.watch.leaks) > 0 {
				return found("one of them is in %s", strings.Join(p.watch.leaks, ", "))
			}
			return nil
		},
	}}
}
