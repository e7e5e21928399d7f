// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/test/pipenet"
)

const user = "u"

func gate(t *testing.T, o Options) *Gate {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// serve answers with the result of next: the length of the body, or the error of reading it.
func serve(t *testing.T, g *Gate, next http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(g.Guard(next))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func reads(limit int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		done, err := Admit(r.Context(), user, limit)
		n := int64(0)
		if err == nil {
			defer done()
			n, err = io.Copy(io.Discard, r.Body)
		}
		if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
			http.Error(w, s.Error(), int(s.ErrStatus.Code))
			return
		}
		_, _ = fmt.Fprint(w, n, err)
	}
}

// head sends the header of a request and returns the connection.
func head(t *testing.T, address, lines string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\n"+lines+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func answer(t *testing.T, r *bufio.Reader) (code int, text string, closes bool) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Close
}

// A handler that does not call Admit gets nothing of the body, and the client gets its answer before it has sent any.
func TestClosedUntilAdmitted(t *testing.T) {
	t.Parallel()
	address := serve(t, gate(t, Options{}), func(w http.ResponseWriter, r *http.Request) {
		if n, err := r.Body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errClosed) {
			t.Errorf("read %d bytes: %v", n, err)
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	for _, lines := range []string{"Content-Length: 10\r\n", "Content-Length: 14000000\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 10\r\nExpect: 100-continue\r\n"} {
		_, r := head(t, address, lines)
		if code, _, closes := answer(t, r); code != http.StatusUnauthorized || !closes {
			t.Errorf("%q: %d, closes %v", lines, code, closes)
		}
	}
}

// Limits are checked before reading if a length is declared, and otherwise while reading.
func TestLimits(t *testing.T) {
	t.Parallel()
	g := gate(t, Options{})
	address := serve(t, g, reads(10))
	_, r := head(t, address, "Content-Length: 11\r\n")
	if code, text, _ := answer(t, r); code != http.StatusRequestEntityTooLarge || !strings.Contains(text, "at most 10 bytes") {
		t.Errorf("declared: %d %s", code, text)
	}
	for body, want := range map[string]int{"0123456789": 200, "0123456789a": 413, strings.Repeat("x", 1<<20): 413} {
		resp, err := http.Post("http://"+address, "text/plain", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			continue // the server closed while a long body was being sent
		}
		if resp.StatusCode != want {
			t.Errorf("chunked, %d bytes: %s", len(body), resp.Status)
		}
		resp.Body.Close()
	}
	if g.Held() != 0 {
		t.Errorf("%d bytes are held after all", g.Held())
	}
}

// A long JSON body has a limited number of values, wherever it is cut, and texts of any length.
func TestValues(t *testing.T) {
	t.Parallel()
	g := gate(t, Options{})
	address := serve(t, g, func(w http.ResponseWriter, r *http.Request) {
		done, err := AdmitJSON(r.Context(), user, MaxJSON)
		if err != nil {
			t.Error(err)
			return
		}
		defer done()
		if _, err := io.Copy(io.Discard, r.Body); apierrors.IsRequestEntityTooLargeError(err) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		} else if err != nil {
			t.Error(err)
		}
	})
	escaped := `{"a":"` + strings.Repeat(`\\\",[{`, 1<<20) + `","b":"` + strings.Repeat(`,`, 4<<20) + `"}`
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"short, many values": {`[` + strings.Repeat("0,", 1<<20) + `0]`, http.StatusOK},
		"long, many values":  {`[` + strings.Repeat("0,", 2<<20) + `0]`, http.StatusRequestEntityTooLarge},
		"long, many objects": {`[` + strings.Repeat("{} ,", 1<<20) + `0]`, http.StatusRequestEntityTooLarge},
		"long texts":         {escaped, http.StatusOK},
		"long, few values":   {`[` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 1<<13) + `0]`, http.StatusOK},
	} {
		resp, err := http.Post("http://"+address, "application/json", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %s", name, resp.Status)
		}
		resp.Body.Close()
	}
}

// The body of an object has few values, which are not deep, and texts of any length.
func TestObjects(t *testing.T) {
	t.Parallel()
	g := gate(t, Options{})
	address := serve(t, g, func(w http.ResponseWriter, r *http.Request) {
		done, err := AdmitObject(r.Context(), user, MaxJSON)
		if err != nil {
			t.Error(err)
			return
		}
		defer done()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		}
	})
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"values":          {`[` + strings.Repeat("0,", 19_998) + `0]`, http.StatusOK},
		"too many values": {`[` + strings.Repeat("0,", 20_000) + `0]`, http.StatusRequestEntityTooLarge},
		"labels":          {`{"metadata":{"labels":{` + strings.Repeat(`"a":"b",`, 20_000) + `"c":"d"}}}`, http.StatusRequestEntityTooLarge},
		"deep":            {strings.Repeat("[", 100) + strings.Repeat("]", 100), http.StatusOK},
		"too deep":        {strings.Repeat("[", 101) + strings.Repeat("]", 101), http.StatusRequestEntityTooLarge},
		"long text":       {`{"a":"` + strings.Repeat("[,", 1<<20) + `"}`, http.StatusOK},
	} {
		resp, err := http.Post("http://"+address, "application/json", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tt.want || tt.want != http.StatusOK && !strings.Contains(string(text), "at most 20000 values (members, entries and elements), nested at most 100 deep") {
			t.Errorf("%s: %s %s %v", name, resp.Status, text, err)
		}
	}
}

// One caller never takes what is left for the others.
func TestShares(t *testing.T) {
	t.Parallel()
	g := gate(t, Options{Budget: 32})
	for i, step := range []struct {
		user string
		n    int64
		want bool
	}{{"a", 15, true}, {"a", 3, false}, {"b", 9, true}, {"b", 1, false}, {"c", 8, true}, {"c", 1, false}, {"a", 1, false}} {
		if got := g.budget.Acquire(step.user, step.n); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	for user, n := range map[string]int64{"a": 15, "b": 9, "c": 8} {
		g.budget.Release(user, n)
	}
	if n, users := g.budget.Held(); n != 0 || users != 0 {
		t.Errorf("%d bytes, %d users", n, users)
	}
}

// A body without a declared length takes its share as it arrives.
func TestBudgetOfChunkedBodies(t *testing.T) {
	t.Parallel()
	g := gate(t, Options{Budget: 4 * step})
	address := serve(t, g, reads(1<<30))
	for n, want := range map[int]int{step: 200, 10 * step: 429} {
		resp, err := http.Post("http://"+address, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", n))))
		if err != nil {
			continue // as above
		}
		if resp.StatusCode != want {
			t.Errorf("%d bytes: %s", n, resp.Status)
		}
		resp.Body.Close()
	}
}

// A client that stops sending is disconnected; one that has sent everything may wait for its answer as long as that
// takes.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Minute
		g := gate(t, Options{Patience: patience})
		l := pipenet.Listen()
		s := &http.Server{Handler: g.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reads(1000)(w, r)
			if r.Header.Get("Wait") != "" {
				time.Sleep(3 * patience)
				if r.Context().Err() != nil {
					t.Error("the connection ended with the time for the body")
				}
			}
		}))}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		send := func(text string) (net.Conn, *bufio.Reader) {
			c, err := l.DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\n"+text); err != nil {
				t.Fatal(err)
			}
			return c, bufio.NewReader(c)
		}
		began := time.Now()
		c, r := send("Content-Length: 10\r\n\r\n01234")
		defer c.Close()
		if code, text, _ := answer(t, r); code != http.StatusRequestTimeout || time.Since(began) != patience {
			t.Errorf("stalled: %d %s after %s", code, text, time.Since(began))
		}
		c, r = send("Content-Length: 10\r\nWait: yes\r\n\r\n0123456789")
		defer c.Close()
		if code, text, closes := answer(t, r); code != http.StatusOK || closes {
			t.Errorf("whole: %d %s, closes %v", code, text, closes)
		}
		if g.Held() != 0 {
			t.Errorf("%d bytes are held after all", g.Held())
		}
	})
}
