// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/test/quickclock"
)

// heard returns a context whose logger appends to the result.
func heard(t *testing.T) (context.Context, *[]string) {
	t.Helper()
	var said []string
	return klog.NewContext(t.Context(), funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})), &said
}

// A start without descriptors looks again after pauses that grow to five seconds, and says so once a minute.
func TestAwaitDescriptors(t *testing.T) {
	c, tries := quickclock.New(), 0
	ctx, said := heard(t)
	o := &Options{BindAddress: "127.0.0.1", Clock: c}
	w := &standby{o: o}
	defer w.done()
	err := w.files(ctx, func(n int) error {
		if tries++; tries <= 100 && n == startDescriptors {
			return syscall.EMFILE
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var total time.Duration
	waits := c.Waits()
	for _, d := range waits {
		total += d
	}
	if len(waits) != 100 || fmt.Sprint(waits[:9]) != "[50ms 100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]" || waits[99] != lastLook {
		t.Errorf("pauses %v", waits)
	}
	if want := 1 + int(total/time.Minute); len(*said) != want || !strings.Contains((*said)[0], syscall.EMFILE.Error()) {
		t.Errorf("in %v it said %q, want %d lines", total, *said, want)
	}
}

// A start that waits ends when it is told to.
func TestAwaitDescriptorsIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	o := &Options{BindAddress: "127.0.0.1", Clock: clock.RealClock{}}
	w, enough := &standby{o: o}, errors.New("enough")
	defer w.done()
	err := w.files(ctx, func(int) error { cancel(enough); return syscall.ENFILE })
	if !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
}

// A server that waits serves its port as soon as it can, says once why it cannot, and leaves it when it does not wait any more.
func TestStandbyTriesAgain(t *testing.T) {
	ctx, said := heard(t)
	var lc net.ListenConfig
	taken, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{BindAddress: "127.0.0.1", Port: taken.Addr().(*net.TCPAddr).Port, Clock: clock.RealClock{}}
	w := &standby{o: o}
	for _, reason := range []string{"first", "second"} {
		w.waits(ctx, reason)
	}
	if len(*said) != 1 || !strings.Contains((*said)[0], "address already in use") {
		t.Errorf("it said %q", *said)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	w.waits(ctx, "third")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for path, code := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", o.Port, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != code || !strings.Contains(string(body), "third") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	w.done()
	w.waits(ctx, "fourth")
	if free, err := lc.Listen(ctx, "tcp", taken.Addr().String()); err != nil {
		t.Error(err)
	} else if err := free.Close(); err != nil {
		t.Error(err)
	}
}

// One connection after the other is refused for lack of descriptors, and the log says so once.
func TestNoConnectionIsAccepted(t *testing.T) {
	ctx, said := heard(t)
	l, err := (&Options{BindAddress: "127.0.0.1", Clock: quickclock.New()}).Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inner := l.Secure.(*tracked)
	inner.Listener = failing{inner.Listener}
	for range 10 {
		if _, err := inner.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("accepted: %v", err)
		}
	}
	if len(*said) != 1 || !strings.Contains((*said)[0], "No connection can be accepted") {
		t.Errorf("it said %q", *said)
	}
}

type failing struct{ net.Listener }

func (failing) Accept() (net.Conn, error) { return nil, syscall.EMFILE }
