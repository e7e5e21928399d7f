// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/console"
)

// onceLife is how long a link works.
const onceLife = 10 * time.Minute

// once is a link that works once. Its secret is in the fragment of the address, which no server logs. A second use is refused and
// reported, because it may be that of somebody else.
type once struct {
	secret string
	entry  console.Entry
	again  func() // called if the link is presented again
	clock  clock.PassiveClock
	until  time.Time

	mu   sync.Mutex // guards used
	used bool
}

func newOnce(c clock.PassiveClock, e console.Entry) *once {
	return &once{secret: rand.Text(), entry: e, again: func() {}, clock: c, until: c.Now().Add(onceLife)}
}

// enter exchanges the secret of the link.
func (o *once) enter(r *http.Request) (console.Entry, error) {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Once ")
	if !ok || subtle.ConstantTimeCompare([]byte(secret), []byte(o.secret)) != 1 {
		return console.Entry{}, errors.New("this console is opened by the link that platform console prints")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used {
		o.again()
		return console.Entry{}, errors.New("the link was used already: run platform console again to get a new one")
	}
	if !o.clock.Now().Before(o.until) {
		return console.Entry{}, errors.New("the link has expired: run platform console again to get a new one")
	}
	o.used = true
	return o.entry, nil
}

// newLocal serves the console at an address of this machine, and passes the requests of its sessions on with the
// credentials of a kubeconfig.
func newLocal(config *rest.Config, address string, link *once) (http.Handler, error) {
	pages, err := console.New(console.Options{
		Sessions: console.SessionOptions{Idle: consoleIdle, Life: consoleLife, Clock: clock.RealClock{}},
		Enter:    link.enter, Good: func(context.Context, string) bool { return true },
	})
	if err != nil {
		return nil, err
	}
	api, err := passOn(config)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		console.Protect(w.Header())
		switch {
		case r.Host != address && r.Host != "localhost:"+port: // a page may have its own name lead to this machine
			console.Refuse(w, http.StatusMisdirectedRequest, "this console is at http://"+address)
		case console.Owns(r.URL.Path):
			pages.ServeHTTP(w, r)
		case r.URL.Path == "/":
			http.Redirect(w, r, console.Path, http.StatusFound)
		case !pages.Through(w, r, api, func(*http.Request, string) {}):
			console.Refuse(w, http.StatusUnauthorized, "this console is opened by the link that platform console prints")
		}
	}), nil
}

// passOn sends requests to the server of a kubeconfig. What a browser says of itself is left out: to the server the
// request is the command's own.
func passOn(config *rest.Config) (http.Handler, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, // streams
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			for name := range p.Out.Header {
				if private(name) {
					p.Out.Header.Del(name)
				}
			}
		},
		ModifyResponse: func(r *http.Response) error {
			for _, name := range []string{"Set-Cookie", "WWW-Authenticate", "Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Cache-Control", "Access-Control-Allow-Origin"} {
				r.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				console.Refuse(w, http.StatusBadGateway, "the server does not answer: "+err.Error())
			}
		},
	}, nil
}

// private reports whether a header is not passed on: it describes the browser, or would change who asks.
func private(name string) bool {
	for _, prefix := range []string{"Impersonate-", "X-Remote-", "X-Forwarded-", "Sec-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "Authorization", "Origin", "Referer", "Cookie", "User-Agent", "Accept-Language", "Forwarded", "X-Api-Key", "Txn-Token":
		return true
	}
	return false
}
