// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// RequestTimeout is the longest duration of one request to the API.
	RequestTimeout = 60 * time.Second
	// firstTry and longTry are the pauses between tries of a request that fails temporarily: they
	// double from firstTry up to longTry.
	firstTry = 200 * time.Millisecond
	longTry  = 5 * time.Second
	// maxRetryAfter is the longest pause that a server may ask for.
	maxRetryAfter = 60 * time.Second
	// tokenPatience is how long the server may refuse the worker's token. It does so for a moment
	// after it starts, and permanently if the token is invalid.
	tokenPatience = 5 * time.Minute
)

// ErrToken ends all waiting for the API: the worker's token has expired, or the server refuses
// it permanently. Another worker with a new token may continue.
var ErrToken = errors.New("the worker's token is not valid any more")

// ErrFolder ends all waiting for the API like ErrToken, of which errors.Is reports it to be one: the folder of the run was
// deleted, so nothing of the run can be kept any more.
var ErrFolder error = folderError{}

type folderError struct{}

func (folderError) Error() string { return "the folder of the run is gone" }

// Is reports true for ErrToken.
func (folderError) Is(target error) bool { return target == ErrToken }

// patience is the transport that handles an API that is unavailable, restarting or overloaded.
// It repeats reads until they are answered, with growing pauses, for as long as the worker's
// token is valid. A read over which the server itself fails is sent WorkFaults times. It does not repeat writes:
// their callers do, by rules that differ between events and results, for as long as the token is valid.
type patience struct {
	next  http.RoundTripper
	clock clock.Clock
	// until is when the token expires; zero if that is not known.
	until time.Time
	// folder is that of the run; empty for none.
	folder string

	mu sync.Mutex
	// refused is the time since when the server has refused the token without interruption.
	refused time.Time
}

// RoundTrip sends a request. It repeats one that only reads as often as needed.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.URL.Query().Has("watch") {
		return p.once(r)
	}
	faults := Faults{Most: WorkFaults}
	for pause := firstTry; ; pause = min(2*pause, longTry) {
		response, err := p.read(r)
		done := err == nil && (!passing(response.StatusCode) || !faults.goOn(response.StatusCode))
		if r.Context().Err() != nil || done || err != nil && !Temporary(err) {
			return response, err
		}
		if !Sleep(r.Context(), p.clock, max(jitter(pause), retryAfter(response))) {
			return response, cmp.Or(err, r.Context().Err())
		}
	}
}

// over returns why nothing is sent any more; nil while requests make sense.
func (p *patience) over() error {
	if !p.until.IsZero() && !p.clock.Now().Before(p.until) {
		return ErrToken
	}
	if p.folder != "" {
		if _, err := os.Lstat(p.folder); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the executor names the folder, and only whether it is there is asked
			return ErrFolder
		}
	}
	return nil
}

// once sends a request one time. RequestTimeout also limits reading the answer.
func (p *patience) once(r *http.Request) (*http.Response, error) {
	if err := p.over(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), RequestTimeout)
	response, err := p.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	if err := p.known(response); err != nil {
		cancel()
		return nil, errors.Join(err, response.Body.Close())
	}
	response.Body = &body{response.Body, cancel}
	return response, nil
}

// read sends a request and reads its whole answer. An answer that breaks off is an error.
func (p *patience) read(r *http.Request) (*http.Response, error) {
	response, err := p.once(r)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(all))
	return response, nil
}

// known returns an error if the server has refused the token for too long.
func (p *patience) known(response *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if response.StatusCode != http.StatusUnauthorized {
		p.refused = time.Time{}
		return nil
	}
	now := p.clock.Now()
	if p.refused.IsZero() {
		p.refused = now
	}
	if now.Sub(p.refused) > tokenPatience {
		return ErrToken
	}
	return nil
}

// body cancels the timeout of its request when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// passing reports whether a retry may succeed after this status: the server is restarting, is
// overloaded or does not know the worker yet.
func passing(code int) bool {
	switch code {
	// The authenticator may not know the token's task yet, or may be reloading.
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

// retryAfter returns the pause that an answer asks for; 0 for none.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	n, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}

// jitter changes a pause randomly by up to a quarter, so that many workers do not retry at the
// same time.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1) //nolint:gosec // nothing secret
}

// expiry returns when a JSON Web Token expires; zero for other tokens.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}
