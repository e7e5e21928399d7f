// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package door_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/pipenet"
)

const secret = "a secret of the door"

// sign returns the signature of a text.
func sign(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// hook is a door as that of a code host. It answers with what it got.
func hook(paths ...string) door.Door {
	return door.Door{
		Name: "hook", Paths: paths,
		Verify: func(r *http.Request, body []byte) (user.Info, error) {
			switch r.PathValue("name") {
			case "nosuch":
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "hooks"}, "nosuch")
			case "broken":
				return nil, apierrors.NewInternalError(fmt.Errorf("the store said %s", secret))
			case "nobody":
				return nil, nil //nolint:nilnil // what a wrong door does
			}
			return &user.DefaultInfo{Name: "hook"}, door.Signature{Header: "X-Sig", Prefix: "sha256="}.Check(r, body, []byte(secret), nil, []byte("the next secret"))
		},
		Handle: func(w http.ResponseWriter, r *http.Request, body []byte) {
			who, _ := request.UserFrom(r.Context())
			rest, err := io.ReadAll(r.Body)
			_, bounded := r.Context().Deadline()
			_, _ = fmt.Fprint(w, who.GetName(), " ", r.PathValue("name"), " ", string(body), " ", r.URL.RawQuery, len(rest), err, bounded)
		},
	}
}

// house is a server with doors. Whatever is for no door is answered with 418.
type house struct {
	*httptest.Server
	metrics *prometheus.Registry

	mu   sync.Mutex
	said []string
}

func open(t *testing.T, doors ...door.Door) *house {
	t.Helper()
	h := &house{metrics: prometheus.NewRegistry()}
	set, err := door.New(door.Options{Doors: doors, Metrics: h.metrics, Sparse: sparse.New(clock.RealClock{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	logger := funcr.New(func(_, args string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.said = append(h.said, args)
	}, funcr.Options{})
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	wrapped := set.Wrap(api, nil)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wrapped.ServeHTTP(w, r.WithContext(klog.NewContext(r.Context(), logger)))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *house) send(t *testing.T, method, path, body string, header ...string) (code int, text string, answered http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

// head sends a request, or its beginning, from an address of this machine.
func (h *house) head(t *testing.T, from, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// got is the head of an answer.
type got struct {
	code   int
	closes bool // the connection
	header http.Header
}

func answer(t *testing.T, r *bufio.Reader) got {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return got{resp.StatusCode, resp.Close, resp.Header}
}

// outcomes returns how many requests to the door had an outcome.
func (h *house) outcomes(t *testing.T, outcome string) (n float64) {
	t.Helper()
	families, err := h.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "platform_door_requests_total" && l.GetName() == "outcome" && l.GetValue() == outcome {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// A verified request is handled with its caller, its body and the values of its path.
func TestVerified(t *testing.T) {
	t.Parallel()
	h := open(t, hook("/hooks/{name}", "/hook"))
	for _, key := range []string{secret, "the next secret"} {
		code, text, header := h.send(t, "POST", "/hooks/a?x=1", "payload", "X-Sig", sign(key, "payload"))
		if code != http.StatusOK || text != "hook a payload x=10 <nil> true" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d %s %v", code, text, header)
		}
	}
	if code, text, _ := h.send(t, "POST", "/hook", "", "X-Sig", sign(secret, "")); code != http.StatusOK || !strings.HasPrefix(text, "hook   ") {
		t.Errorf("without a body: %d %s", code, text)
	}
	if n := h.outcomes(t, "answered"); n != 3 {
		t.Errorf("%v were answered", n)
	}
}

// An answer does not say why a caller is not verified, and neither it nor the log has what was sent.
func TestUnverified(t *testing.T) {
	t.Parallel()
	h := open(t, hook("/hook", "/hooks/{name}"))
	good := sign(secret, "payload")
	wrong := [][]string{
		nil,
		{"X-Sig", ""},
		{"X-Sig", sign("another secret", "payload")},
		{"X-Sig", sign("", "payload")}, // of the empty secret among those of the door
		{"X-Sig", sign(secret, "payload ")},
		{"X-Sig", strings.TrimPrefix(good, "sha256=")},
		{"X-Sig", "sha256=" + good},
		{"X-Sig", good + "00"},
		{"X-Sig", good[:len(good)-2]},
		{"X-Sig", "sha1=" + good[7:]},
		{"X-Sig", good, "X-Sig", good},
		{"X-Signature", good},
		{"Authorization", "Bearer " + secret},
	}
	for _, header := range wrong {
		code, text, _ := h.send(t, "POST", "/hook", "payload", header...)
		if code != http.StatusUnauthorized || text != `{"error":{"code":401,"message":"Unauthorized"}}`+"\n" {
			t.Errorf("%q: %d %s", header, code, text)
		}
	}
	if code, _, _ := h.send(t, "POST", "/hooks/nobody", "payload", "X-Sig", good); code != http.StatusUnauthorized {
		t.Errorf("without a caller: %d", code)
	}
	if code, text, _ := h.send(t, "POST", "/hooks/nosuch", "payload", "X-Sig", good); code != http.StatusNotFound || !strings.Contains(text, "nosuch") {
		t.Errorf("an API error: %d %s", code, text)
	}
	if code, text, _ := h.send(t, "POST", "/hooks/broken", "payload", "X-Sig", good); code != http.StatusInternalServerError || strings.Contains(text, "store") {
		t.Errorf("an internal error: %d %s", code, text)
	}
	if n := h.outcomes(t, "unverified"); n != float64(len(wrong)+1) {
		t.Errorf("%v of %d were not verified", n, len(wrong)+1)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	said := strings.Join(h.said, "\n")
	if !strings.Contains(said, `"door"="hook"`) || !strings.Contains(said, "the proof") || strings.Contains(said, "payload") || strings.Contains(said, good[7:]) {
		t.Errorf("the log says\n%s", said)
	}
}

// Only the paths of a door, as they are written, lead to it. Nothing that passes by a door has other rights for it, since it
// goes the way of every request.
func TestPaths(t *testing.T) {
	t.Parallel()
	h := open(t, hook("/hooks/{name}", "/hook"))
	sig := sign(secret, "")
	for path, want := range map[string]int{
		"/hook": 200, "/hook?a=b": 200, "/hooks/a": 200, "/hooks/a.b": 200,
		"/hook/": 418, "/hook/a": 418, "//hook": 418, "/hook//": 418, "/Hook": 418, "/%68ook": 418, "/hook%2f": 418, "/./hook": 418, "/a/../hook": 418,
		"/hooks/": 418, "/hooks": 418, "/hooks/a/b": 418, "/hooks/a%2fb": 418, "/hooks/..": 418, "/hooks/%2e%2e": 418, "/hooks/..%2fhook": 418,
		"/hooks/a/../../hook": 418, "/apis": 418, "/": 418, "/hook;a": 418, "/hook%00": 418, "/hook?a=%zz": 400,
	} {
		if code, _, _ := h.send(t, "POST", path, "", "X-Sig", sig); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "POSTS"} {
		code, _, header := h.send(t, method, "/hook", "", "X-Sig", sig)
		if code != http.StatusMethodNotAllowed || header.Get("Allow") != "POST" || header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", method, code, header)
		}
	}
	// As a proxy is asked, and as a server is.
	for _, line := range []string{"POST http://elsewhere/hook HTTP/1.1", "CONNECT /hook HTTP/1.1"} {
		_, r := h.head(t, "127.0.0.1", line+"\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		if a := answer(t, r); a.code < 300 {
			t.Errorf("%s: %d", line, a.code)
		}
	}
}

// A body that is too long is refused, without reading it if it says so, and whatever it says.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	d := hook("/hook")
	d.Bounds = door.Bounds{Body: 10, Bytes: 256 << 10}
	h := open(t, d)
	for _, lines := range []string{"Content-Length: 11\r\n\r\n", "Content-Length: 99999999999\r\n\r\n", "Content-Length: 11\r\nExpect: 100-continue\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n"} {
		_, r := h.head(t, "127.0.0.1", "POST /hook HTTP/1.1\r\nHost: localhost\r\n"+lines)
		if a := answer(t, r); a.code != http.StatusRequestEntityTooLarge || !a.closes {
			t.Errorf("%q: %d", lines, a.code)
		}
	}
	_, r := h.head(t, "127.0.0.1", "POST /hook HTTP/1.1\r\nHost: localhost\r\nX-Sig: "+sign(secret, "0123456789")+"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n")
	if a := answer(t, r); a.code != http.StatusOK {
		t.Errorf("chunked: %d", a.code)
	}
	if n := h.outcomes(t, "too_large"); n != 4 {
		t.Errorf("%v were too large", n)
	}
}

// One address does not take all slots of a door, one door takes none of another, and none takes any of the API.
func TestFull(t *testing.T) {
	t.Parallel()
	d, other := hook("/hook"), hook("/other")
	inside, leave := make(chan struct{}), make(chan struct{})
	d.Bounds.Requests = 4
	d.Handle = func(http.ResponseWriter, *http.Request, []byte) { inside <- struct{}{}; <-leave }
	other.Name = "other"
	h := open(t, d, other)
	text := "POST /hook HTTP/1.1\r\nHost: localhost\r\nX-Sig: " + sign(secret, "") + "\r\nContent-Length: 0\r\n\r\n"
	var readers []*bufio.Reader
	for _, from := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.2"} {
		_, r := h.head(t, from, text)
		<-inside
		readers = append(readers, r)
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		_, r := h.head(t, from, text)
		if a := answer(t, r); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d", from, a.code)
		}
	}
	if code, _, _ := h.send(t, "POST", "/other", "", "X-Sig", sign(secret, "")); code != http.StatusOK {
		t.Errorf("another door: %d", code)
	}
	if code, _, _ := h.send(t, "GET", "/api", ""); code != http.StatusTeapot {
		t.Errorf("the API: %d", code)
	}
	close(leave)
	for _, r := range readers {
		if a := answer(t, r); a.code != http.StatusOK {
			t.Errorf("a request that was inside: %d", a.code)
		}
	}
	go func() { <-inside }()
	_, r := h.head(t, "127.0.0.1", text)
	if a := answer(t, r); a.code != http.StatusOK {
		t.Errorf("when there is room: %d", a.code)
	}
}

// Bodies that arrive take the bytes of their door, and a client that leaves gives back what it has.
func TestBytes(t *testing.T) {
	t.Parallel()
	d := hook("/hook")
	d.Bounds = door.Bounds{Body: 1000, Bytes: 2000}
	h := open(t, d)
	text := "POST /hook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n"
	begun, r := h.head(t, "127.0.0.1", text)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the body is being read
		t.Fatal(line, err)
	}
	_, r = h.head(t, "127.0.0.1", text)
	if a := answer(t, r); a.code != http.StatusTooManyRequests {
		t.Errorf("a second body: %d", a.code)
	}
	if err := testutil.GatherAndCompare(h.metrics, strings.NewReader("# HELP platform_door_held_bytes Bytes of request bodies that doors read or hold, by door.\n# TYPE platform_door_held_bytes gauge\nplatform_door_held_bytes{door=\"hook\"} 900\n"), "platform_door_held_bytes"); err != nil {
		t.Error(err)
	}
	_ = begun.Close()
	kit.Await(t, "the end of the request whose client left", func() bool { return h.outcomes(t, "left") == 1 })
	if code, text, _ := h.send(t, "POST", "/hook", strings.Repeat("x", 1000), "X-Sig", sign(secret, strings.Repeat("x", 1000))); code != http.StatusOK {
		t.Errorf("afterwards: %d %s", code, text)
	}
}

// A client that is slow has the time of the door, and no more slots than others meanwhile.
func TestSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := hook("/hook")
		d.Bounds.Time = time.Minute
		d.Handle = func(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }
		set, err := door.New(door.Options{Doors: []door.Door{d}, Sparse: sparse.New(clock.RealClock{})})
		if err != nil {
			t.Fatal(err)
		}
		l := pipenet.Listen()
		s := &http.Server{Handler: set.Wrap(http.NotFoundHandler(), nil)}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		for text, want := range map[string]int{
			"Content-Length: 10\r\n\r\n01234":                                                   http.StatusRequestTimeout,
			"Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n":                                  http.StatusRequestTimeout,
			"X-Sig: " + sign(secret, "0123456789") + "\r\nContent-Length: 10\r\n\r\n0123456789": http.StatusOK, // whose handler is slow
		} {
			began := time.Now()
			c, err := l.DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "POST /hook HTTP/1.1\r\nHost: localhost\r\n"+text); err != nil {
				t.Fatal(err)
			}
			a := answer(t, bufio.NewReader(c))
			if a.code != want || time.Since(began) != time.Minute {
				t.Errorf("%q: %d after %s", text, a.code, time.Since(began))
			}
			_ = c.Close()
		}
	})
}

// What is around Handle sees the caller and not the query, which may have secrets.
func TestInside(t *testing.T) {
	t.Parallel()
	set, err := door.New(door.Options{Doors: []door.Door{hook("/hook")}, Sparse: sparse.New(clock.RealClock{})})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	h := set.Wrap(http.NotFoundHandler(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, _ := request.UserFrom(r.Context())
			seen = append(seen, who.GetName()+" "+r.RequestURI+" "+r.URL.String())
			next.ServeHTTP(w, r)
		})
	})
	for _, sig := range []string{"", sign(secret, "")} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/hook?code=s3cret", nil)
		r.Header.Set("X-Sig", sig)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusOK && !strings.Contains(w.Body.String(), "code=s3cret") {
			t.Errorf("the door got %s", w.Body)
		}
	}
	if want := []string{"hook /hook /hook"}; !slices.Equal(seen, want) {
		t.Errorf("seen: %q, want %q", seen, want)
	}
}

// A door that is not complete, or is in the way of another one, is refused at the start.
func TestRefusedDoors(t *testing.T) {
	t.Parallel()
	with := func(change func(*door.Door)) door.Door {
		d := hook("/other")
		d.Name = "other"
		change(&d)
		return d
	}
	for want, d := range map[string]door.Door{
		"there are two of this name": with(func(d *door.Door) { d.Name = "hook" }),
		"needs a name":               with(func(d *door.Door) { d.Name = "" }),
		"needs a name, paths":        with(func(d *door.Door) { d.Verify = nil }),
		"paths of doors":             with(func(d *door.Door) { d.Paths = []string{"/hook"} }),
		`path "/a/"`:                 with(func(d *door.Door) { d.Paths = []string{"/a/"} }),
		`path "POST /a"`:             with(func(d *door.Door) { d.Paths = []string{"POST /a"} }),
		`path "/{rest...}"`:          with(func(d *door.Door) { d.Paths = []string{"/{rest...}"} }),
		`path "/"`:                   with(func(d *door.Door) { d.Paths = []string{"/"} }),
		"the bytes must be":          with(func(d *door.Door) { d.Bounds.Bytes = 1 }),
		"at least 2 requests":        with(func(d *door.Door) { d.Bounds.Requests = 1 }),
	} {
		if _, err := door.New(door.Options{Doors: []door.Door{hook("/hook"), d}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if set, err := door.New(door.Options{Metrics: prometheus.NewRegistry()}); err != nil {
		t.Error(err)
	} else {
		set.Close()
	}
}
