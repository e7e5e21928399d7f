// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxSessions bounds the sessions of a server, and maxOwn those of one user. The least recently used one of a user ends
	// when another begins.
	maxSessions, maxOwn = 1024, 16
	// secretBytes is the length of the secrets, in bytes.
	secretBytes = 32
	// recheck is how often an open request asks whether its session and its credential are still good.
	recheck = 30 * time.Second
)

// ErrFull is the error for a server that has as many sessions as it may.
var ErrFull = errors.New("the server has too many sessions; try again later")

// SessionOptions configure Sessions.
type SessionOptions struct {
	// Idle is how long a session lasts without a request, and Life how long it lasts at most.
	Idle, Life time.Duration
	// Clock decides what has expired.
	Clock clock.WithTicker
}

// Sessions are the sessions of one server. They are in memory, so they end with the process. All methods may be called
// concurrently.
type Sessions struct {
	o SessionOptions

	mu  sync.Mutex // guards all and what sessions say
	all map[[sha256.Size]byte]*Session
}

// Session is what a cookie and a key stand for together.
type Session struct {
	// User is the name of the user whose credential it has, and Namespace the namespace where its views begin.
	User, Namespace string

	id     [sha256.Size]byte // the digest of the cookie's value
	key    [sha256.Size]byte // the digest of the key
	sealed []byte            // the credential; the key to it is derived from the cookie's value, which only the browser has

	began, used time.Time
	open        int           // requests that are being answered
	ended       chan struct{} // closed when the session ends
}

// Secrets are what a browser learns about a session.
type Secrets struct {
	// Cookie is the value of the cookie, and Key what the page sends besides.
	Cookie, Key string
}

// NewSessions makes a store of sessions.
func NewSessions(o SessionOptions) *Sessions {
	return &Sessions{o: o, all: map[[sha256.Size]byte]*Session{}}
}

// Begin begins a session of a user with a credential, which may be empty.
func (s *Sessions) Begin(user, namespace, credential string) (*Session, Secrets, error) {
	secrets := Secrets{Cookie: secret(), Key: secret()}
	sealed, err := seal(secrets.Cookie, credential)
	if err != nil {
		return nil, Secrets{}, fmt.Errorf("session: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock.Now()
	var own []*Session
	for _, x := range s.all {
		if s.over(x, now) {
			s.end(x)
		} else if x.User == user {
			own = append(own, x)
		}
	}
	if len(own) >= maxOwn {
		s.end(slices.MinFunc(own, func(a, b *Session) int { return a.used.Compare(b.used) }))
	}
	if len(s.all) >= maxSessions {
		return nil, Secrets{}, ErrFull
	}
	x := &Session{
		User: user, Namespace: namespace, id: sha256.Sum256([]byte(secrets.Cookie)), key: sha256.Sum256([]byte(secrets.Key)), sealed: sealed,
		began: now, used: now, ended: make(chan struct{}),
	}
	s.all[x.id] = x
	return x, secrets, nil
}

// Find returns the session of a cookie and a key; nil if there is none.
func (s *Sessions) Find(secrets Secrets) *Session {
	id, key := sha256.Sum256([]byte(secrets.Cookie)), sha256.Sum256([]byte(secrets.Key))
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.all[id]
	if x == nil || subtle.ConstantTimeCompare(x.key[:], key[:]) != 1 {
		return nil
	}
	now := s.o.Clock.Now()
	if s.over(x, now) {
		s.end(x)
		return nil
	}
	x.used = now
	return x
}

// Use counts a request of a session, until done is called. The context of the request ends with the session, too, and as
// soon as good, which is asked from time to time, reports that the credential is no longer accepted.
func (s *Sessions) Use(ctx context.Context, x *Session, good func(context.Context) bool) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	x.open++
	s.mu.Unlock()
	ticker := s.o.Clock.NewTicker(recheck)
	go func() { // ends with the request
		defer cancel()
		defer ticker.Stop()
		for {
			select {
			case <-x.ended:
				return
			case <-ctx.Done():
				return
			case <-ticker.C():
				if !s.o.Clock.Now().Before(s.Expires(x)) || !good(ctx) {
					return
				}
			}
		}
	}()
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		x.open--
		x.used = s.o.Clock.Now()
	}
}

// End ends a session and everything that is being answered in it.
func (s *Sessions) End(x *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(x)
}

// end is End. The caller holds mu.
func (s *Sessions) end(x *Session) {
	if s.all[x.id] == x {
		delete(s.all, x.id)
		close(x.ended)
	}
}

// over reports whether a session has expired. An open request, such as a stream, keeps it from being idle. The caller
// holds mu.
func (s *Sessions) over(x *Session, now time.Time) bool {
	return !now.Before(x.began.Add(s.o.Life)) || x.open == 0 && !now.Before(x.used.Add(s.o.Idle))
}

// Expires returns when a session ends at the latest.
func (s *Sessions) Expires(x *Session) time.Time { return x.began.Add(s.o.Life) }

// secret returns a text that nobody can guess.
func secret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
