// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package door answers requests of callers that the API server's authenticators do not know: the webhooks of a code host, the
// adapters of a chat platform, the redirect of an OAuth provider. Such a caller proves itself by a signature over the body, or by
// a secret that only this one endpoint accepts. So the body must be read before its caller is known, and only here it is.
//
// A Door is a struct literal: its paths, its bounds, a Verify that says who the caller is, and a Handle that gets the verified
// caller and the body:
//
//	door.Door{
//		Name:  "github",
//		Paths: []string{"/webhooks/github"},
//		Verify: func(r *http.Request, body []byte) (user.Info, error) {
//			sig := door.Signature{Header: "X-Hub-Signature-256", Prefix: "sha256="}
//			return codeHost, sig.Check(r, body, secrets()...)
//		},
//		Handle: handle,
//	}
//
// A request passes these steps, and the first that fails answers it:
//
//  1. The path is one of the door's, written as it is, and the method is one of the door's (405).
//  2. The request gets one of the door's slots (429).
//  3. Before, if the door has it, lets the request pass by what its headers say.
//  4. The body gets its bytes of the door's share (429), is short enough (413), and arrives in time (408). A door has an
//     intake.Gate of its own, so bodies here use nothing of the budget of the API, nor of another door.
//  5. Verify names the caller. Any error is 401 and the answer does not say why, unless it is an API error, such as 404 for an
//     object of the path that does not exist, or 503 for a secret that is not set.
//  6. Handle runs with the caller in the context of the request, and a deadline. It is in the audit log as that caller.
//
// Slots and bytes are shared among addresses: one address gets at most as much as remains free, so half of each if it is alone
// (package fair). All addresses of an IPv6 network of 64 bits count as one. Behind a proxy all callers have its address.
//
// Handle acts in the name of the caller, which is a user with roles as any other, and what it accepts must be stored before it
// answers. The same request may come again, within the tolerance of its time stamp or, without one, at any time: whoever sends
// deliveries gives each an id, by which Handle recognises what it has stored. Answers are short.
//
// Doors are on both listeners of a server, before everything else. kube-apiserver forwards only requests below /apis, so behind
// it callers need a way to the server itself, by its Service or an Ingress.
package door

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/server/fair"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/sparse"
)

// Door is one way in.
type Door struct {
	// Name identifies the door in metrics and in the log.
	Name string
	// Paths are the exact paths of the door, as patterns of net/http: {name} stands for one segment, and r.PathValue returns it.
	Paths []string
	// Methods are those that the door answers. Default: POST.
	Methods []string
	// Bounds limit what callers can use up before they are known.
	Bounds Bounds
	// Before, if set, refuses a request before its body is read. An API error is answered; any other error is 401, as of Verify.
	Before func(r *http.Request) error
	// Verify returns the user that a request comes from. It must compare secrets in constant time, as Signature and Secret do,
	// and its error must not hold any, because it is logged.
	Verify func(r *http.Request, body []byte) (user.Info, error)
	// Handle answers a verified request. The body of r is empty, because it was read. request.UserFrom returns the user.
	Handle func(w http.ResponseWriter, r *http.Request, body []byte)
}

// Bounds limit the requests to a door that are being answered. Zero values mean the defaults.
type Bounds struct {
	// Body is the maximum length of a body in bytes. Default: 1 MiB.
	Body int64
	// Bytes is how many bytes of bodies the door holds at once, at least twice Body. Default: eight times Body.
	Bytes int64
	// Requests is how many requests the door answers at once, at least 2. Default: 32.
	Requests int64
	// Time is how long a client may take to send a body, with one second more for each 64 KiB that arrived, and after that how long
	// Verify and Handle together may take. Default: 10 seconds.
	Time time.Duration
}

const (
	defaultBody     = 1 << 20
	defaultRequests = 32
	defaultTime     = 10 * time.Second
	// sharers is how many addresses can send the longest body at the same time, by default.
	sharers = 8
)

// withDefaults returns the door with its defaults, or an error that says what is wrong with it.
func (d Door) withDefaults() (Door, error) {
	b := &d.Bounds
	if len(d.Methods) == 0 {
		d.Methods = []string{http.MethodPost}
	}
	b.Body = cmp.Or(b.Body, defaultBody)
	b.Bytes = cmp.Or(b.Bytes, sharers*b.Body)
	b.Requests = cmp.Or(b.Requests, defaultRequests)
	b.Time = cmp.Or(b.Time, defaultTime)
	switch {
	case d.Name == "" || len(d.Paths) == 0 || d.Verify == nil || d.Handle == nil:
		return d, fmt.Errorf("door %q: needs a name, paths, Verify and Handle", d.Name)
	case b.Body < 0 || b.Requests < 2 || b.Time < 0 || b.Bytes < 2*b.Body:
		return d, fmt.Errorf("door %q: bounds must not be negative, there must be at least 2 requests, and the bytes must be at least twice those of a body", d.Name)
	}
	for _, p := range d.Paths {
		if !plain(p) || strings.ContainsAny(p, " \t") || p == "/" || strings.Contains(p, "...}") {
			return d, fmt.Errorf("door %q: path %q: must begin with a slash, be written in its shortest form, not end with a slash, and have neither a method nor an open end", d.Name, p)
		}
	}
	return d, nil
}

// plain reports whether a path is written in its shortest form.
func plain(p string) bool { return strings.HasPrefix(p, "/") && path.Clean(p) == p }

// Options configure a Set.
type Options struct {
	// Doors are those of the set.
	Doors []Door
	// Metrics, if set, registers the metrics until Close.
	Metrics prometheus.Registerer
	// Sparse receives a line for each cause of refusals.
	Sparse *sparse.Log
}

// Set is all doors of a server. All methods may be called concurrently.
type Set struct {
	doors   []*door
	metrics prometheus.Registerer
	all     metric.Group
}

// New makes the doors. It fails if two of them have a path in common, or if their metrics are already registered.
func New(o Options) (*Set, error) {
	s := &Set{metrics: o.Metrics}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform_door", Name: "requests_total", Help: "Requests to doors, by door and outcome: " + outcomesText + ".",
	}, []string{"door", "outcome"})
	s.all = metric.Group{requests}
	for _, d := range o.Doors {
		d, err := d.withDefaults()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(s.doors, func(other *door) bool { return other.Name == d.Name }) {
			return nil, fmt.Errorf("door %q: there are two of this name", d.Name)
		}
		gate, err := intake.New(intake.Options{Budget: d.Bounds.Bytes, Patience: d.Bounds.Time})
		if err != nil {
			return nil, err
		}
		for _, outcome := range outcomes {
			requests.WithLabelValues(d.Name, outcome) // an alert sees only how a series grows
		}
		s.doors = append(s.doors, &door{Door: d, gate: gate, slots: fair.New(d.Bounds.Requests), requests: requests.MustCurryWith(prometheus.Labels{"door": d.Name}), log: o.Sparse})
		s.all = append(s.all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "platform_door", Name: "held_bytes", Help: "Bytes of request bodies that doors read or hold, by door.", ConstLabels: prometheus.Labels{"door": d.Name},
		}, func() float64 { return float64(gate.Held()) }))
	}
	if _, err := s.mux(nil); err != nil {
		return nil, err
	}
	if s.metrics == nil || len(s.doors) == 0 {
		s.metrics = nil
		return s, nil
	}
	if err := s.metrics.Register(s.all); err != nil {
		return nil, fmt.Errorf("metrics of doors: %w", err)
	}
	return s, nil
}

// Close unregisters the metrics.
func (s *Set) Close() {
	if s.metrics != nil {
		s.metrics.Unregister(s.all)
	}
}

// Wrap puts the doors before next. inside is put around Handle of each door, where the caller is known.
func (s *Set) Wrap(next http.Handler, inside func(http.Handler) http.Handler) http.Handler {
	if s == nil || len(s.doors) == 0 {
		return next
	}
	mux, err := s.mux(inside)
	if err != nil { // New has tried
		panic(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A path that is written otherwise, with a dot, a double slash or an escape, is no door's. The mux would redirect it.
		if r.URL.RawPath == "" && plain(r.URL.Path) {
			if _, pattern := mux.Handler(r); pattern != "" {
				mux.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// mux returns what finds the door of a path. net/http panics about patterns that it does not accept.
func (s *Set) mux(inside func(http.Handler) http.Handler) (mux *http.ServeMux, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.Join(err, fmt.Errorf("paths of doors: %v", v))
		}
	}()
	mux = http.NewServeMux()
	for _, d := range s.doors {
		h := d.gate.Guard(d.handler(inside))
		for _, p := range d.Paths {
			mux.Handle(p, h)
		}
	}
	return mux, nil
}

// keyBody is the key of the body in the context of a verified request.
type keyBody struct{}

// verified is a request whose caller is known.
type verified struct {
	r       *http.Request
	body    []byte
	outcome *string
}

func verifiedOf(ctx context.Context) verified {
	v, _ := ctx.Value(keyBody{}).(verified)
	return v
}
