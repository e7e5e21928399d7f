// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach is how the program platform-workspace reaches the server of a repository: only where egress allows it, with a
// credential only for its hosts, and not for ever.
package reach

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

const (
	// StallTime is how long a server may send nothing while it answers.
	StallTime = 2 * time.Minute
	// maxList bounds the list of refs that a server sends, in bytes. A million refs take about 70 MB.
	maxList = 128 << 20
)

// errList means that a server lists more refs than anybody has.
var errList = fmt.Errorf("%w: the server lists refs of more than %d bytes", repository.ErrUnusable, maxList)

// Remote returns a repository, and a context that ends with a cause when its server stalls or sends more than maxPack bytes.
func Remote(ctx context.Context, a workspace.Access, maxPack int64, stall time.Duration) (repository.Remote, context.Context, context.CancelFunc) {
	to := repository.Remote{URL: a.URL, Token: a.Token, Transport: egress.Guard{Allow: a.Allow}.Transport()}
	if a.Token != "" {
		to.Transport = a.Hosts.Transport(to.Transport)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	to.Transport = watched{next: to.Transport, stall: stall, maxPack: maxPack, giveUp: giveUp}
	return to, ctx, func() { giveUp(nil) }
}

// watched is a transport that gives up, with a cause, on a server that stalls or sends too much.
type watched struct {
	next  http.RoundTripper
	stall time.Duration
	// maxPack bounds what the server sends of a repository, in bytes.
	maxPack int64
	giveUp  func(cause error)
}

func (t watched) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b := &watchedBody{ReadCloser: answer.Body, watched: t, left: t.maxPack, tooMuch: repository.ErrTooLarge}
	if r.Method == http.MethodGet {
		b.left, b.tooMuch = maxList, errList
	}
	b.timer = time.AfterFunc(t.stall, func() {
		t.giveUp(fmt.Errorf("%w: it sent nothing for %s", repository.ErrUnavailable, t.stall))
	})
	answer.Body = b
	return answer, nil
}

type watchedBody struct {
	io.ReadCloser
	watched
	timer *time.Timer
	// left is how many bytes may follow, and tooMuch says that there were more.
	left    int64
	tooMuch error
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(b.stall)
	}
	if err != nil {
		b.timer.Stop()
	}
	if b.left -= int64(n); b.left < 0 {
		b.giveUp(b.tooMuch)
		return 0, b.tooMuch
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}
