// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

// Rows about the memory of many small objects, beside that of kube-apiserver and etcd together.
const (
	rowSmallHeld = "12,000 small objects: memory"
	rowSmallRest = "12,000 small objects: memory a minute later"
)

// smallObjects is how many there are.
const smallObjects = 12_000

// small measures the memory after small objects were created and listed once.
func small(ctx context.Context, o Options, r *report.Report) (err error) {
	if !o.wants(rowSmallHeld) && !o.wants(rowSmallRest) {
		return nil
	}
	dir := filepath.Join(o.Dir, "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	idle, err := s.rss()
	if err != nil {
		return err
	}
	_, url, err := s.client("")
	if err != nil {
		return err
	}
	ours := httpSubject{url, func() (*http.Client, error) {
		c, _, err := s.client("")
		return c, err
	}}
	if err := ours.fillSmall(ctx); err != nil {
		return err
	}
	held, err := s.rss()
	if err != nil {
		return err
	}
	theirs, name, err := peerHeld(ctx, o, filepath.Join(dir, "peer"))
	if err != nil {
		return err
	}
	wait(ctx, time.Minute)
	rest, err := s.rss()
	if err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: rowSmallHeld, Unit: "MiB", Better: report.Lower, Ours: held, Other: theirs, OtherName: name, Times: 2},
		report.Row{Name: rowSmallRest, Unit: "MiB", Better: report.Lower, Ours: rest, Other: 1.5 * idle, OtherName: "1.5x idle"})
}

// peerHeld returns what the peer holds after the same. Where it is not built, that is what was measured once.
func peerHeld(ctx context.Context, o Options, dir string) (mib float64, name string, err error) {
	if _, missing := os.Stat(filepath.Join(o.Kube, "kube-apiserver")); o.Kube == "" || missing != nil {
		return 547, "kube-apiserver + etcd, once", nil
	}
	p, err := startPeer(ctx, o.Kube, dir)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	s := httpSubject{p.url, func() (*http.Client, error) { return p.client(), nil }}
	if err := s.fillSmall(ctx); err != nil {
		return 0, "", err
	}
	for _, pid := range p.pids {
		rss, err := memory(pid, "VmRSS")
		if err != nil {
			return 0, "", err
		}
		mib += rss
	}
	return mib, "kube-apiserver + etcd", nil
}

// fillSmall creates the objects with 16 clients, and lists them once.
func (s httpSubject) fillSmall(ctx context.Context) error {
	var next atomic.Int64
	if err := s.all(16, func(c *http.Client) error {
		for i := next.Add(1); i <= smallObjects; i = next.Add(1) {
			body := fmt.Appendf(nil, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Skill","metadata":{"name":"small-%d"},"spec":{"description":"a skill","content":{"inline":"text"}}}`, i)
			if err := send(ctx, c, http.MethodPost, s.url+besidePath, body, nil); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	_, err = fetch(ctx, c, s.url+besidePath, "")
	return err
}
