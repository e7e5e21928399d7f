// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A server that starts on a full disk is alive and not ready, and says why. It becomes ready when there is space.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := standalone.SmallVolume(t, 48)
	s := standalone.Start(t, standalone.OnAPort(t), func(o *standalone.Options) {
		o.DataDir = dir
		o.DiskReserve.Quantity = resource.MustParse("-1") // no reserve that could be given up
	})
	s.RESTTask(t, "a")
	s.Stop(t)
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	port := kit.Must[*url.URL](t)(url.Parse(s.URL)).Port()
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.StartAgain(t)
	}()
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} // the certificate is for the wait alone
	await := func(path string, code int, text string) {
		t.Helper()
		kit.Await(t, fmt.Sprintf("%s: %d %s", path, code, text), func() bool {
			resp, err := insecure.Get("https://127.0.0.1:" + port + path)
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode == code && strings.Contains(string(body), text)
		})
	}
	await("/livez", http.StatusOK, "no space left on device")
	await("/readyz", http.StatusServiceUnavailable, "no space left on device")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	<-started
	await("/readyz", http.StatusOK, "ok")
	if code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a", ""); code != http.StatusOK {
		t.Errorf("the task: %d %s", code, body)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err = f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
