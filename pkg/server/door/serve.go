// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/server/fair"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/server/statuscode"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sparse"
)

// What becomes of a request.
const (
	answered   = "answered"   // by Handle
	failed     = "failed"     // by Handle, with a code of 500 or above, or a panic
	malformed  = "malformed"  // another method, or a query that cannot be read
	full       = "full"       // no slot, or no room for the body
	tooLarge   = "too_large"  // the body
	slow       = "slow"       // the body did not arrive in time
	left       = "left"       // the client left before the body had arrived
	unverified = "unverified" // the proof is missing or wrong
	refused    = "refused"    // by Verify, for another reason
)

const outcomesText = answered + ", " + failed + ", " + malformed + ", " + full + ", " + tooLarge + ", " + slow + ", " + left + ", " + unverified + ", " + refused

var outcomes = strings.Split(outcomesText, ", ")

// retryAfter is the number of seconds after which a client that met a full door should retry.
const retryAfter = 1

// door is a Door that is open.
type door struct {
	Door
	gate     *intake.Gate
	slots    *fair.Share
	requests *prometheus.CounterVec
	log      *sparse.Log
}

// handler answers the requests to the door. inside may be nil.
func (d *door) handler(inside func(http.Handler) http.Handler) http.Handler {
	var handle http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := verifiedOf(r.Context())
		out := statuscode.NewWriter(w)
		d.Handle(out, v.r.WithContext(r.Context()), v.body)
		if out.Code() < http.StatusInternalServerError {
			*v.outcome = answered
		}
	})
	if inside != nil {
		handle = inside(handle)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		outcome := failed
		defer func() { d.requests.WithLabelValues(outcome).Inc() }()
		address := addressOf(r.RemoteAddr)
		if !d.slots.Acquire(address, 1) {
			outcome = full
			d.refuse(w, r, apierrors.NewTooManyRequests("this door answers as many requests as it may in total or for one address; try again later", retryAfter))
			return
		}
		defer d.slots.Release(address, 1)
		var err error
		var body []byte
		var done func()
		if err = d.check(w, r); err != nil {
			outcome = malformed
		} else if outcome, err = d.before(r); err == nil {
			body, done, outcome, err = d.read(r, address)
		}
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		defer done()
		ctx, cancel := context.WithTimeout(r.Context(), d.Bounds.Time)
		defer cancel()
		d.enter(w, r.WithContext(ctx), body, &outcome, handle)
	})
}

// check refuses requests that no caller of the door makes.
func (d *door) check(w http.ResponseWriter, r *http.Request) error {
	if !slices.Contains(d.Methods, r.Method) {
		allowed := strings.Join(d.Methods, ", ")
		w.Header().Set("Allow", allowed)
		return statusError(http.StatusMethodNotAllowed, "the method is not allowed here; allowed: "+allowed)
	}
	return wellformed.Check(r)
}

// read reads the body. done gives back its bytes.
func (d *door) read(r *http.Request, address string) (body []byte, done func(), outcome string, err error) {
	if done, err = intake.Admit(r.Context(), address, d.Bounds.Body); err != nil {
		return nil, nil, outcomeOf(err), err
	}
	var b bytes.Buffer
	b.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	if _, err = b.ReadFrom(r.Body); err != nil {
		done()
		if outcome = outcomeOf(err); outcome == left {
			err = apierrors.NewBadRequest("the body did not arrive")
		}
		return nil, nil, outcome, err
	}
	return b.Bytes(), done, failed, nil
}

// outcomeOf returns the outcome of a request whose body was not read.
func outcomeOf(err error) string {
	s, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case !ok:
		return left
	case s.ErrStatus.Code == http.StatusRequestEntityTooLarge:
		return tooLarge
	case s.ErrStatus.Code == http.StatusRequestTimeout:
		return slow
	}
	return full
}

// before has the door look at a request whose body was not read.
func (d *door) before(r *http.Request) (outcome string, err error) {
	if d.Before == nil {
		return failed, nil
	}
	if err = d.Before(r); err == nil {
		return failed, nil
	}
	return d.unverified(r, err)
}

// unverified returns the outcome of a request that was not let in, and what it is answered.
func (d *door) unverified(r *http.Request, err error) (outcome string, answer error) {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return refused, err
	}
	d.log.Error(r.Context(), err, "A door could not verify its caller", "door", d.Name, "address", addressOf(r.RemoteAddr))
	return unverified, statusError(http.StatusUnauthorized, http.StatusText(http.StatusUnauthorized))
}

// enter lets a request in whose caller proves who it is.
func (d *door) enter(w http.ResponseWriter, r *http.Request, body []byte, outcome *string, handle http.Handler) {
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	caller, err := d.Verify(r, body)
	if err == nil && caller == nil {
		err = errors.New("the door names no caller")
	}
	if err != nil {
		*outcome, err = d.unverified(r, err)
		d.refuse(w, r, err)
		return
	}
	ctx := context.WithValue(request.WithUser(r.Context(), caller), keyBody{}, verified{r, body, outcome})
	outside := r.WithContext(ctx)
	// The query may have secrets, such as the code of an OAuth provider, and what is around Handle writes it into the audit log.
	outside.URL = &url.URL{Path: r.URL.Path}
	outside.RequestURI = outside.URL.RequestURI()
	handle.ServeHTTP(w, outside)
}

func statusError(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// refuse answers with an API error. The text of an internal one is logged and not answered.
func (d *door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var s metav1.Status
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		s = known.ErrStatus
	}
	if s.Code < http.StatusBadRequest || s.Code == http.StatusInternalServerError {
		d.log.Error(r.Context(), err, "A door failed", "door", d.Name)
		s.Code, s.Message = http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError)
	}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	rest.Fail(w, int(s.Code), s.Message)
}

// addressOf returns what counts as one address.
func addressOf(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	const network = 64 // bits of an IPv6 address, of which one customer gets at least one value
	ip := a.Addr().Unmap().WithZone("")
	if p, err := ip.Prefix(network); err == nil && ip.Is6() {
		return p.String()
	}
	return ip.String()
}
