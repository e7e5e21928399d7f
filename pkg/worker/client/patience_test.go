// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/platform-ai/platform/test/quickclock"
)

// answers is the server of a client: it gives one answer after the other, and repeats the last
// one. 0 is a refused connection, -1 an answer that breaks off.
type answers struct {
	codes []int
	after string
	asked []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := a.codes[min(len(a.asked), len(a.codes)-1)]
	a.asked = append(a.asked, r.Method)
	if code == 0 {
		return nil, errors.New("connection refused")
	}
	response := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("whole"))}
	if a.after != "" {
		response.Header.Set("Retry-After", a.after)
	}
	if code == -1 {
		response.StatusCode, response.Body = http.StatusOK, io.NopCloser(io.MultiReader(strings.NewReader("ha"), broken{}))
	}
	return response, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func ask(t *testing.T, p *patience, method, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.RoundTrip(r)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(text)), errors.Join(err, response.Body.Close())
}

// TestReadsArePatient: reads are repeated until they are answered, however long the server is
// unavailable, unless it is there and fails over this one; writes and watches are sent once.
func TestReadsArePatient(t *testing.T) {
	away := make([]int, 200) // a quarter of an hour of refused connections
	for name, tt := range map[string]struct {
		codes  []int
		method string
		query  string
		want   string
		asked  int
	}{
		"answered":    {[]int{200}, "GET", "", "200 whole", 1},
		"away":        {append(away, 200), "GET", "", "200 whole", 201},
		"restarting":  {[]int{0, 503, 500, 429, 401, 408, -1, 200}, "GET", "", "200 whole", 8},
		"fails":       {[]int{500}, "GET", "", "500 whole", WorkFaults},
		"not found":   {[]int{503, 404}, "GET", "", "404 whole", 2},
		"not allowed": {[]int{403}, "GET", "", "403 whole", 1},
		"write":       {[]int{503, 201}, "POST", "", "503 whole", 1},
		"watch":       {[]int{503, 200}, "GET", "?watch=true", "503 whole", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{codes: tt.codes}
			got, err := ask(t, &patience{next: a, clock: quickclock.New()}, tt.method, "https://example.test/x"+tt.query)
			if err != nil || got != tt.want || len(a.asked) != tt.asked {
				t.Errorf("got %q, %v after %d requests", got, err, len(a.asked))
			}
		})
	}
}

// TestRepeatEnds: a write is repeated while the server is away, and not without end if the server is there and fails over it.
func TestRepeatEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		tried int
	}{
		"away":             {nil, 1000},
		"unavailable":      {status(http.StatusServiceUnavailable), 1000},
		"fails":            {status(http.StatusInternalServerError), CallFaults},
		"refused for good": {status(http.StatusBadRequest), 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := Repeat(t.Context(), quickclock.New(), func(context.Context) error {
				switch n++; {
				case n == 1000:
					return nil
				case tc.err == nil:
					return errors.New("connection refused")
				default:
					return tc.err
				}
			})
			if n != tc.tried || (err == nil) != (n == 1000) {
				t.Errorf("%v after %d tries, want %d", err, n, tc.tried)
			}
		})
	}
}

// TestPatienceEnds: patience ends with the token, with the worker, and if the server keeps
// refusing the token. If the server asks for a pause, that pause is used.
func TestPatienceEnds(t *testing.T) {
	const url = "https://example.test/x"
	c := quickclock.New()
	a := &answers{codes: []int{0}}
	begun := c.Now()
	if _, err := ask(t, &patience{next: a, clock: c, until: begun.Add(time.Hour)}, "GET", url); !errors.Is(err, ErrToken) || Temporary(err) || c.Since(begun) < time.Hour || c.Since(begun) > time.Hour+2*longTry {
		t.Errorf("%v after %v", err, c.Since(begun))
	}
	begun = c.Now()
	if _, err := ask(t, &patience{next: &answers{codes: []int{401}}, clock: c}, "GET", url); !errors.Is(err, ErrToken) || c.Since(begun) < tokenPatience {
		t.Errorf("%v after %v", err, c.Since(begun))
	}
	p := &patience{next: &answers{codes: []int{401, 200, 401, 200}}, clock: c}
	for range 2 {
		if got, err := ask(t, p, "GET", url); err != nil || got != "200 whole" {
			t.Errorf("%q, %v", got, err)
		}
		c.Step(tokenPatience) // a token that was good in between
	}
	c = quickclock.New()
	if _, err := ask(t, &patience{next: &answers{codes: []int{429, 200}, after: "17"}, clock: c}, "GET", url); err != nil || !cmp.Equal(c.Waits(), []time.Duration{17 * time.Second}) {
		t.Errorf("%v, waited %v", err, c.Waits())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	a = &answers{codes: []int{0}}
	if _, err := (&patience{next: a, clock: c}).RoundTrip(r); err == nil || len(a.asked) != 1 { //nolint:bodyclose // there is none
		t.Errorf("%v after %d requests", err, len(a.asked))
	}
}

// A worker whose folder was deleted under it does not wait for its server any longer.
func TestPatienceEndsWithTheFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	server := &answers{codes: []int{0}}
	p := &patience{next: deletes{server, folder}, clock: quickclock.New(), folder: folder}
	if _, err := ask(t, p, http.MethodGet, "http://x/"); !errors.Is(err, ErrFolder) || !errors.Is(err, ErrToken) || Temporary(err) {
		t.Errorf("a read: %v", err)
	}
	if _, err := ask(t, p, http.MethodPost, "http://x/"); !errors.Is(err, ErrFolder) {
		t.Errorf("a write: %v", err)
	}
	if len(server.asked) != 3 {
		t.Errorf("%d requests", len(server.asked))
	}
}

// deletes removes a folder when the third request is sent.
type deletes struct {
	*answers
	folder string
}

func (d deletes) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(d.asked) == 2 {
		if err := os.RemoveAll(d.folder); err != nil {
			return nil, err
		}
	}
	return d.answers.RoundTrip(r)
}

// TestEveryReadOfTheAPIIsPatient: the client's transport waits, so every call does.
func TestEveryReadOfTheAPIIsPatient(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	a, err := New(Config{ServerURL: server.URL, Token: "token"}, quickclock.New())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.CoreV1alpha1().Approvals("ns").Get(t.Context(), "a", metav1.GetOptions{}); err == nil || Temporary(err) || n != 4 {
		t.Errorf("%v after %d requests", err, n)
	}
}

func TestExpiry(t *testing.T) {
	jwt := func(claims string) string {
		return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
	}
	for token, want := range map[string]int64{jwt(`{"exp":1700000000}`): 1700000000, jwt(`{}`): 0, jwt(`x`): 0, "a.b": 0, "": 0, "a.!.c": 0} {
		got := expiry(token)
		if want == 0 != got.IsZero() || want != 0 && got.Unix() != want {
			t.Errorf("%s: %v", token, got)
		}
	}
}

func status(code int) error {
	return apierrors.NewGenericServerResponse(code, "post", schema.GroupResource{Resource: "tasks"}, "t", "", 0, false)
}

func TestTemporary(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("dial tcp: connection refused"): true,
		status(http.StatusServiceUnavailable):      true,
		status(http.StatusInternalServerError):     true,
		status(http.StatusTooManyRequests):         true,
		status(http.StatusUnauthorized):            true,
		status(http.StatusForbidden):               false,
		status(http.StatusNotFound):                false,
		status(http.StatusConflict):                false,
		status(http.StatusGone):                    false,
		status(http.StatusBadRequest):              false,
		context.Canceled:                           false,
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity}}: false,
	} {
		if got := Temporary(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
}
