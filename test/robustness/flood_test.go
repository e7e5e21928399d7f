// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/test/kit"
)

const tasksPath = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"

// listener is one of the server's, with what identifies a client to it.
type listener struct {
	base *url.URL
	dial func(protocol string) net.Conn
	// token is a bearer token, where there are no certificates.
	token string
	// scheme is that of requests, and native says that the paths of the native API are served.
	scheme string
	native bool
	// missing is the code with which it hears that there is no such task.
	missing int
}

// listeners returns the secure listener with the administrator's certificate, and the plain one with a token of an editor.
func listeners(t *testing.T, s *kit.Server) map[string]listener {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secureBase, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	plainBase, err := url.Parse(regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`).FindString(s.Output()))
	if err != nil || plainBase.Port() == "" {
		t.Fatalf("the server names no plain listener: %v\n%s", err, s.Output())
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s.MustShell(t, "kubectl create serviceaccount flood && kubectl create rolebinding flood --clusterrole=platform-editor --serviceaccount=default:flood && until kubectl auth can-i create tasks --as system:serviceaccount:default:flood; do :; done")
	dial := func(base *url.URL, with func(protocol string) *tls.Config) func(protocol string) net.Conn {
		return func(protocol string) net.Conn {
			t.Helper()
			var d interface {
				DialContext(ctx context.Context, network, address string) (net.Conn, error)
			} = &net.Dialer{}
			if with != nil {
				d = &tls.Dialer{Config: with(protocol)}
			}
			c, err := d.DialContext(t.Context(), "tcp", base.Host)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
	}
	return map[string]listener{
		"secure": {base: secureBase, scheme: "https", native: true, missing: http.StatusNotFound, dial: dial(secureBase, func(protocol string) *tls.Config {
			own := secure.Clone()
			own.NextProtos = []string{protocol}
			return own
		})},
		"plain": {base: plainBase, scheme: "http", missing: http.StatusForbidden, dial: dial(plainBase, nil), token: strings.TrimSpace(s.MustShell(t, "kubectl create token flood"))},
	}
}

// TestRapidResets: whatever requests write into the log that are reset as soon as they are sent (CVE-2023-44487), whoever sends them
// and to whichever listener, is in the sparse log, and the server serves on. The plain listener speaks HTTP/2 to clients that begin
// with it. That the sparse log has one line per cause and interval is tested where it is, with a clock of the test.
func TestRapidResets(t *testing.T) {
	const resets, batch = 20_000, 200
	s := kit.StartServer(t, t.TempDir())
	for name, l := range listeners(t, s) {
		before := len(s.Output())
		paths := []string{"/api/v1/tasks", "/api/v1/tasks/none/stream", "/api/v1/tasks/none/events", "/healthz", "/no/such/path", "/api/v1/tasks?limit=never"}
		if l.native {
			paths = []string{tasksPath, tasksPath + "?watch=1", tasksPath + "/none/events", "/api/v1/tasks", "/openapi/v3", "/no/such/path", tasksPath + "?timeout=never"}
		}
		for sent := 0; sent < resets; {
			n, err := l.reset(paths, resets-sent, batch, sent%2 == 0)
			if n == 0 {
				t.Fatalf("%s: the server took no request: %v", name, err)
			}
			sent += n
		}
		s.MustShell(t, "kubectl get tasks")
		log := s.Output()[before:]
		checkSparse(t, name, log)
		t.Logf("%s: %d bytes of log after %d resets: %v", name, len(log), resets, causes(log))
	}
}

// TestBrokenConnections: what connections that break the protocol write into the log is in the sparse log. The library
// that serves the secure listener writes these lines to the standard error itself.
func TestBrokenConnections(t *testing.T) {
	const connections, atOnce = 400, 50
	s := kit.StartServer(t, t.TempDir(), "--v=0") // these lines are not in the log of a server that only warns
	for name, l := range listeners(t, s) {
		before := len(s.Output())
		var all errgroup.Group
		all.SetLimit(atOnce)
		for i := range connections {
			c := l.dial("h2")
			out := "GET / HTTP/1.1\r\nHost: x\r\n\r\n" // no HTTP/2
			if i%2 == 0 {
				out = http2.ClientPreface + "\x00\x00\x01\x00\x00\x00\x00\x00\x00x" // data of no stream
			}
			all.Go(func() error {
				if _, err := io.WriteString(c, out); err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, c) // until the server ends it; it may reset it
				return c.Close()
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		s.MustShell(t, "kubectl get tasks")
		log := s.Output()[before:]
		checkSparse(t, name, log)
		if name == "secure" && !strings.Contains(log, "http2: server connection error") {
			t.Errorf("the log does not say what was wrong:\n%s", log)
		}
		t.Logf("%s: %d bytes of log after %d connections: %v", name, len(log), connections, causes(log))
	}
}

const (
	// fewLines of a cause need not be in the sparse log: what the server does beside a flood.
	fewLines = 10
	// longLine is more than a line of the log has, in bytes, whatever a client sends.
	longLine = 2 << 10
)

// checkSparse checks that lines which a flood repeats are from the sparse log, which says in each how many it has left out, and that
// no line is long.
func checkSparse(t *testing.T, listener, log string) {
	t.Helper()
	repeated := map[string]int{}
	for line := range strings.Lines(log) {
		if !strings.Contains(line, " alsoDropped=") {
			repeated[cause(line)]++
		}
		if len(line) > longLine {
			t.Errorf("%s: a line of %d bytes: %.200s", listener, len(line), line)
		}
	}
	for cause, n := range repeated {
		if n > fewLines {
			t.Errorf("%s: %d lines %q beside the sparse log", listener, n, cause)
		}
	}
}

// message is a line of the log after what says when and where it was written.
var message = regexp.MustCompile(`^[IWEF][0-9]{4} [^\]]+\] (.*)`)

// cause is the first words of the message of a line.
func cause(line string) string {
	words := strings.Fields(line)
	if m := message.FindStringSubmatch(line); m != nil {
		words = slices.DeleteFunc(strings.Fields(m[1]), func(w string) bool { return strings.HasPrefix(w, "timeElapsed=") })
	}
	return strings.Join(words[:min(len(words), 4)], " ")
}

// causes counts the lines of a log by the first words of their messages.
func causes(log string) map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(log) {
		n[cause(line)]++
	}
	return n
}

// reset sends and resets requests until there are enough or the server ends the connection, and returns how many it
// sent. After each batch it waits until the server has read it.
func (l listener) reset(paths []string, most, batch int, named bool) (sent int, err error) {
	c := l.dial("h2")
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
			fields := []string{":method", "GET", ":scheme", l.scheme, ":authority", l.base.Host, ":path", path}
			switch {
			case !named:
				fields = append(fields, "authorization", "Bearer forged")
			case l.token != "":
				fields = append(fields, "authorization", "Bearer "+l.token)
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
// 413 with the limit before the connection ends, whether it says the length or not, on either listener.
func TestLongBodiesAreAnswered(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	for name, l := range listeners(t, s) {
		for path, limit := range map[string]string{
			tasksPath: "15728640", tasksPath + "/none/result": "10485760", tasksPath + "/none/events": "15728640",
			"/api/v1/tasks": "15728640", "/internal/v1/results/default/none": "10485760",
		} {
			if strings.HasPrefix(path, tasksPath) && !l.native {
				continue
			}
			for _, framing := range []string{fmt.Sprintf("Content-Length: %d", longBody), "Transfer-Encoding: chunked"} {
				code, body, err := l.post(t, path, framing)
				missing := strings.Contains(path, "none") && framing[0] == 'T' // that is known before the length
				long := code == http.StatusRequestEntityTooLarge && strings.Contains(body, limit)
				if err != nil || !long && (!missing || code != l.missing) {
					t.Errorf("%s, %s, %s: %d %s, %v", name, path, framing, code, body, err)
				}
			}
		}
	}
}

// longBody is more than any path takes, in bytes.
const longBody = 40 << 20

// post sends a long body and reads the answer meanwhile.
func (l listener) post(t *testing.T, path, framing string) (code int, answer string, err error) {
	t.Helper()
	c := l.dial("http/1.1")
	written := make(chan error, 1)
	go func() {
		out := bufio.NewWriter(c)
		if l.token != "" {
			framing += "\r\nAuthorization: Bearer " + l.token
		}
		_, _ = fmt.Fprintf(out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", path, l.base.Host, framing)
		piece := strings.Repeat(" ", 32<<10)
		var err error
		for n := 0; n < longBody && err == nil; n += len(piece) {
			if framing[0] == 'T' {
				_, err = fmt.Fprintf(out, "%x\r\n%s\r\n", len(piece), piece)
			} else {
				_, err = out.WriteString(piece)
			}
		}
		written <- errors.Join(err, out.Flush())
	}()
	defer func() {
		c.Close()
		if err := <-written; err != nil {
			t.Logf("%s: the rest of the body: %v", path, err) // the connection ended
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
