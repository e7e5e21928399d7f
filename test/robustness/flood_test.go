// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/server/sparse"
	"github.com/platform-ai/platform/test/harness"
)

const tasksPath = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"

// dialer connects to the secure listener with the administrator's certificate.
func dialer(t *testing.T, s *harness.Server) (base *url.URL, dial func(protocol string) *tls.Conn) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	base, err = url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return base, func(protocol string) *tls.Conn {
		t.Helper()
		own := secure.Clone()
		own.NextProtos = []string{protocol}
		c, err := (&tls.Dialer{Config: own}).DialContext(t.Context(), "tcp", base.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*tls.Conn)
	}
}

// TestRapidResets: requests that are reset as soon as they are sent (CVE-2023-44487) write one line per cause and interval
// into the log, whoever sends them, and the server serves on.
func TestRapidResets(t *testing.T) {
	const resets, batch = 20_000, 200
	s := harness.StartServer(t, t.TempDir())
	base, dial := dialer(t, s)
	before, began := len(s.Output()), time.Now()
	paths := []string{tasksPath, tasksPath + "?watch=1", tasksPath + "/none/events", "/api/v1/tasks", "/openapi/v3", "/no/such/path", tasksPath + "?timeout=never"}
	for sent := 0; sent < resets; {
		n, err := reset(dial("h2"), base, paths, resets-sent, batch, sent%2 == 0)
		if n == 0 {
			t.Fatalf("the server took no request: %v", err)
		}
		sent += n
	}
	s.MustShell(t, "kubectl get tasks")
	log := s.Output()[before:]
	most := 1 + int(time.Since(began)/sparse.Interval) + 1
	for cause, n := range causes(log) {
		if n > most {
			t.Errorf("%d lines %q, and %d were due", n, cause, most)
		}
	}
	if len(log) > 64<<10 {
		t.Errorf("%d bytes of log", len(log))
	}
	t.Logf("%d bytes of log after %d resets in %v: %v", len(log), resets, time.Since(began).Round(time.Millisecond), causes(log))
}

// causes counts the lines of a log by the first words of their messages.
func causes(log string) map[string]int {
	message := regexp.MustCompile(`^[IWEF][0-9]{4} [^\]]+\] (.*)`)
	n := map[string]int{}
	for line := range strings.Lines(log) {
		words := strings.Fields(line)
		if m := message.FindStringSubmatch(line); m != nil {
			words = slices.DeleteFunc(strings.Fields(m[1]), func(w string) bool { return strings.HasPrefix(w, "timeElapsed=") })
		}
		n[strings.Join(words[:min(len(words), 4)], " ")]++
	}
	return n
}

// reset sends and resets requests until there are enough or the server ends the connection, and returns how many it
// sent. After each batch it waits until the server has read it.
func reset(c *tls.Conn, base *url.URL, paths []string, most, batch int, named bool) (sent int, err error) {
	defer c.Close()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return 0, err
	}
	out := bufio.NewWriter(c)
	framer := http2.NewFramer(out, c)
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	if err := framer.WriteSettings(); err != nil {
		return 0, err
	}
	for sent < most {
		for range min(batch, most-sent) {
			id := uint32(2*sent + 1)
			head.Reset()
			path := paths[sent%len(paths)]
			if strings.Contains(path, "such") {
				path = fmt.Sprintf("%s/%d", path, sent) // another one each time
			}
			fields := []string{":method", "GET", ":scheme", "https", ":authority", base.Host, ":path", path}
			if !named {
				fields = append(fields, "authorization", "Bearer forged")
			}
			for i := 0; i < len(fields); i += 2 {
				if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
					return sent, err
				}
			}
			if err := errors.Join(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}), framer.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
				return sent, err
			}
			sent++
		}
		if err := errors.Join(framer.WritePing(false, [8]byte{1}), out.Flush()); err != nil {
			return sent, err
		}
		for read := false; !read; {
			f, err := framer.ReadFrame()
			if err != nil {
				return sent, err
			}
			switch f := f.(type) {
			case *http2.PingFrame:
				read = f.IsAck()
			case *http2.GoAwayFrame:
				return sent, fmt.Errorf("the server ended the connection: %s", f.ErrCode)
			}
		}
	}
	return sent, nil
}

// TestLongBodiesAreAnswered: a client of HTTP/1 that sends more than a path takes, and reads while it writes, gets the answer
// 413 with the limit before the connection ends, whether it says the length or not.
func TestLongBodiesAreAnswered(t *testing.T) {
	s := harness.StartServer(t, t.TempDir())
	base, dial := dialer(t, s)
	const length = 40 << 20
	for path, limit := range map[string]string{
		tasksPath: "3145728", tasksPath + "/none/result": "10485760", tasksPath + "/none/events": "15728640",
		"/api/v1/tasks": "3145728", "/internal/v1/results/default/none": "10485760",
	} {
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d", length), "Transfer-Encoding: chunked"} {
			missing := strings.Contains(path, "none") && framing[0] == 'T' // that there is no such task is known before the length
			c := dial("http/1.1")
			written := make(chan error, 1)
			go func() {
				out := bufio.NewWriter(c)
				_, _ = fmt.Fprintf(out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", path, base.Host, framing)
				piece := strings.Repeat(" ", 32<<10)
				var err error
				for n := 0; n < length && err == nil; n += len(piece) {
					if framing[0] == 'T' {
						_, err = fmt.Fprintf(out, "%x\r\n%s\r\n", len(piece), piece)
					} else {
						_, err = out.WriteString(piece)
					}
				}
				written <- errors.Join(err, out.Flush())
			}()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Errorf("%s, %s: no answer: %v", path, framing, err)
			} else {
				body, err := io.ReadAll(resp.Body)
				long := resp.StatusCode == http.StatusRequestEntityTooLarge && strings.Contains(string(body), limit)
				if err != nil || !long && (!missing || resp.StatusCode != http.StatusNotFound) {
					t.Errorf("%s, %s: %s %s, %v", path, framing, resp.Status, body, err)
				}
				resp.Body.Close()
			}
			c.Close()
			if err := <-written; err != nil {
				t.Logf("%s, %s: the rest of the body: %v", path, framing, err) // the connection ended
			}
		}
	}
}
