// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultLimit = 100
	maxLimit     = 500
)

// page reads limit and continue. If unlimited is set, a limit of 0 means no limit.
func page(q url.Values, unlimited bool) (url.Values, error) {
	limit, least := defaultLimit, 1
	if unlimited {
		least = 0
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(s, "-") {
			n, err = maxLimit, nil
		}
		if err != nil || n < least {
			return nil, badRequest("limit: must be a number and at least %d", least)
		}
		limit = min(n, maxLimit)
	}
	out := url.Values{}
	if limit > 0 {
		out.Set("limit", strconv.Itoa(limit))
	}
	if token := q.Get("continue"); token != "" {
		if limit == 0 {
			return nil, badRequest("continue: cannot be given with limit=0, which returns everything")
		}
		out.Set("continue", token)
	}
	return out, nil
}
