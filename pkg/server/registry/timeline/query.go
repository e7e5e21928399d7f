// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sse"
)

// Sizes of a page, in events.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// query holds the parameters of a request.
type query struct {
	after int64
	limit int
	types []v1alpha1.EventType // nil: all
	// before and around are positions of pages; 0: not given.
	before, around int64
	backward       bool   // the newest events come first
	text           string // to search for; empty: no search
	// resumed is set if the position is in the header, which clients set that reconnect by themselves.
	resumed bool
	// gap is set if the timeline has not reached the position that was asked for; see beginAnew.
	gap *v1alpha1.EventGap
}

func parse(req *http.Request) (*query, error) {
	v := wellformed.Query(req)
	q := &query{limit: defaultLimit}
	var err error
	if q.after, err = after(v); err != nil {
		return nil, err
	}
	if v.Has("limit") {
		n, err := strconv.ParseInt(v.Get("limit"), 10, 64)
		if number(v.Get("limit")) && err != nil {
			n = maxLimit // more digits than fit into an integer
		}
		if !number(v.Get("limit")) || n <= 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("limit: %q: must be a number from 1; more than %d is lowered", clip(v.Get("limit")), maxLimit))
		}
		q.limit = int(min(n, maxLimit))
	}
	for _, t := range v["type"] {
		if !event.Known(v1alpha1.EventType(t)) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("type: %q: is not an event type", clip(t)))
		}
		q.types = append(q.types, v1alpha1.EventType(t))
	}
	return q, nil
}

// maxText is how long a text to search for may be, in bytes.
const maxText = 256

// parsePage parses the query of a page.
func parsePage(req *http.Request) (*query, error) {
	q, err := parse(req)
	if err != nil {
		return nil, err
	}
	v := wellformed.Query(req)
	for name, at := range map[string]*int64{"before": &q.before, "around": &q.around} {
		if !v.Has(name) {
			continue
		}
		if *at, err = position(name, v.Get(name)); err != nil || *at == 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: must be a number from 1", name, clip(v.Get(name))))
		}
	}
	switch order := v.Get("order"); {
	case !v.Has("order"), order == "asc", order == "desc":
		q.backward = order == "desc" || v.Has("before")
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("order: %q: must be asc or desc", clip(order)))
	}
	q.text = v.Get("q")
	if v.Has("q") && (strings.TrimSpace(q.text) == "" || len(q.text) > maxText || !utf8.ValidString(q.text)) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("q: must be a text of 1 to %d bytes that is not blank", maxText))
	}
	return q, combined(v)
}

// combined refuses parameters that contradict each other.
func combined(v url.Values) error {
	for _, pair := range [][2]string{{"before", "after"}, {"around", "after"}, {"around", "before"}, {"around", "order"}, {"around", "q"}} {
		if v.Has(pair[0]) && v.Has(pair[1]) {
			return apierrors.NewBadRequest(fmt.Sprintf("%s: cannot be combined with %s", pair[0], pair[1]))
		}
	}
	switch {
	case v.Get("order") == "asc" && v.Has("before"):
		return apierrors.NewBadRequest("before: cannot be combined with order=asc; the events before a position come newest first")
	case v.Get("order") == "desc" && v.Has("after"):
		return apierrors.NewBadRequest("after: cannot be combined with order=desc; use before")
	}
	return nil
}

// parseStream parses the query of a stream.
func parseStream(req *http.Request) (*query, error) {
	q, err := parse(req)
	if err != nil {
		return nil, err
	}
	q.after, q.resumed, err = StreamPosition(req)
	return q, err
}

// StreamPosition returns where a stream goes on: after the position in the header Last-Event-ID, which makes it resumed, or in the
// parameter after, or at the beginning. Errors are API errors.
func StreamPosition(req *http.Request) (position int64, resumed bool, err error) {
	if position, resumed, err = Resumed(req); resumed {
		return position, true, err
	}
	position, err = after(wellformed.Query(req))
	return position, false, err
}

func after(v url.Values) (int64, error) {
	if !v.Has("after") {
		return 0, nil
	}
	return position("after", v.Get("after"))
}

// Resumed returns the position in the header Last-Event-ID of a client that reconnects by itself, and whether there is one.
func Resumed(req *http.Request) (after int64, resumed bool, err error) {
	id := req.Header.Get(sse.LastEventID)
	if id == "" {
		return 0, false, nil
	}
	after, err = position(sse.LastEventID, id)
	return after, true, err
}

func position(name, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || !number(value) {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: must be a number from 0", name, clip(value)))
	}
	return min(n, maxPosition), nil
}

// maxPosition is beyond every event. Greater positions mean the same, and positions can be added to without an overflow.
const maxPosition = 1 << 62

// number reports whether s consists of digits only.
func number(s string) bool {
	return s != "" && !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}

// clip shortens a value that is quoted in an error message.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
