// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Way is how a person can begin a session, as the login asks.
type Way struct {
	// Token is set if a token can be exchanged for a session, and Provider if an identity provider is asked.
	Token    bool `json:"token"`
	Provider bool `json:"provider"`
}

// Entry is what a credential stands for.
type Entry struct {
	// User is the name of the user, and Namespace where the views begin.
	User, Namespace string
	// Credential is kept for the requests of the session.
	Credential string
}

// ErrRefused is the error of Options.Enter for a credential that is not accepted. Its text is for people.
var ErrRefused = errors.New("the token is not valid, or has expired")

// Options configure a Console.
type Options struct {
	// Sessions configures the sessions.
	Sessions SessionOptions
	// Way says how sessions begin.
	Way Way
	// Enter returns what the Authorization of a request stands for, or an error for a person.
	Enter func(*http.Request) (Entry, error)
	// More are further paths below Path.
	More map[string]http.HandlerFunc
	// Good reports whether a credential is still accepted.
	Good func(ctx context.Context, credential string) bool
}

// Console serves the page and its sessions.
type Console struct {
	o        Options
	static   *Static
	sessions *Sessions
}

// New makes a console.
func New(o Options) (*Console, error) {
	static, err := NewStatic()
	if err != nil {
		return nil, err
	}
	return &Console{o: o, static: static, sessions: NewSessions(o.Sessions)}, nil
}

// Owns reports whether a path belongs to the console.
func Owns(path string) bool {
	return strings.HasPrefix(path, Path) || path+"/" == Path
}

// ServeHTTP serves the paths of the console.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Protect(w.Header())
	switch {
	case r.URL.Path+"/" == Path:
		http.Redirect(w, r, Path, http.StatusFound)
	case r.URL.Path == Path+"ways":
		Answer(w, http.StatusOK, c.o.Way)
	case r.URL.Path == Path+"session":
		c.session(w, r)
	default:
		if more := c.o.More[strings.TrimPrefix(r.URL.Path, Path)]; more != nil {
			more(w, r)
			return
		}
		c.static.ServeHTTP(w, r)
	}
}

// session begins, describes and ends a session.
func (c *Console) session(w http.ResponseWriter, r *http.Request) {
	switch {
	case !FromPage(r):
		Refuse(w, http.StatusForbidden, "only the console's own page may do this")
	case r.Method == http.MethodPost:
		c.enter(w, r)
	case r.Method == http.MethodGet:
		if x := c.find(r); x != nil {
			Answer(w, http.StatusOK, map[string]any{"user": x.User, "namespace": x.Namespace, "expires": c.sessions.Expires(x).UTC().Format(time.RFC3339)})
			return
		}
		Refuse(w, http.StatusUnauthorized, noSession)
	case r.Method == http.MethodDelete:
		if x := c.find(r); x != nil {
			c.sessions.End(x)
		}
		http.SetCookie(w, Cookie(r, Encrypted(r), ""))
		Answer(w, http.StatusOK, map[string]any{})
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		Refuse(w, http.StatusMethodNotAllowed, "a session can be begun (POST), read (GET) and ended (DELETE)")
	}
}

// noSession is the message for requests without a session.
const noSession = "you are not signed in, or your session has ended"

func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	entry, err := c.o.Enter(r)
	if err != nil {
		Refuse(w, http.StatusUnauthorized, err.Error())
		return
	}
	if old := c.find(r); old != nil {
		c.sessions.End(old)
	}
	secrets, err := c.Begin(entry)
	switch {
	case errors.Is(err, ErrFull):
		Refuse(w, http.StatusTooManyRequests, err.Error())
		return
	case err != nil:
		Refuse(w, http.StatusInternalServerError, "the session could not be made")
		return
	}
	http.SetCookie(w, Cookie(r, Encrypted(r), secrets.Cookie))
	Answer(w, http.StatusCreated, map[string]any{"key": secrets.Key, "user": entry.User, "namespace": entry.Namespace})
}

// Begin begins a session. It returns ErrFull if there are too many.
func (c *Console) Begin(e Entry) (Secrets, error) {
	_, secrets, err := c.sessions.Begin(e.User, e.Namespace, e.Credential)
	return secrets, err
}

// find returns the session that a request presents; nil if there is none.
func (c *Console) find(r *http.Request) *Session {
	secrets, ok := Presented(r)
	if !ok {
		return nil
	}
	return c.sessions.Find(secrets)
}

// Through answers a request for the API that presents a session. authorize gives the request its credential. It reports
// false, and answers nothing, for a request that does not present any.
func (c *Console) Through(w http.ResponseWriter, r *http.Request, api http.Handler, authorize func(*http.Request, string)) bool {
	secrets, ok := Presented(r)
	if !ok || !API(r.URL.Path) {
		return false
	}
	ProtectAPI(w.Header())
	if !SameOrigin(r) {
		Refuse(w, http.StatusForbidden, "a page of another origin made this request")
		return true
	}
	x := c.sessions.Find(secrets)
	if x == nil {
		Refuse(w, http.StatusUnauthorized, noSession)
		return true
	}
	credential, err := x.Credential(secrets)
	if err != nil {
		Refuse(w, http.StatusUnauthorized, noSession)
		return true
	}
	ctx, done := c.sessions.Use(r.Context(), x, func(ctx context.Context) bool { return c.o.Good(ctx, credential) })
	defer done()
	inner := r.Clone(ctx)
	Strip(inner.Header)
	if inner.URL.Query().Has("watch") {
		// A compressed watch is a row of gzip members, one for each flush. Browsers read the first and ignore the others.
		inner.Header.Set("Accept-Encoding", "identity")
	}
	authorize(inner, credential)
	api.ServeHTTP(w, inner)
	return true
}
