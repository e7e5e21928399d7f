// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// parseHeader returns the event as far as the headers describe it. Gitea sends its own headers and GitHub's.
func parseHeader(header http.Header) (e Event, err error) {
	if e.Name, err = first(header, "X-GitHub-Event", "X-Gitea-Event"); err != nil {
		return e, err
	}
	e.Gitea = header.Get("X-Gitea-Event") != ""
	if e.Name == "" {
		return e, malformed("X-GitHub-Event", "must name the event")
	}
	if e.Delivery, err = first(header, "X-GitHub-Delivery", "X-Gitea-Delivery"); err != nil {
		return e, err
	}
	const hook = "X-GitHub-Hook-ID"
	if e.Hook, err = first(header, hook); err != nil {
		return e, err
	}
	if strings.Trim(e.Hook, "0123456789") != "" {
		return e, malformed(hook, "must be a number")
	}
	return e, nil
}

// first returns the value of the first of some headers that is there, and "" if none is.
func first(header http.Header, names ...string) (string, error) {
	for _, name := range names {
		value, err := only(header, name)
		if err != nil {
			return "", err
		}
		if value == "" {
			continue
		}
		if len(value) > MaxHeader || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", malformed(name, "must be at most "+strconv.Itoa(MaxHeader)+" visible characters of ASCII")
		}
		return value, nil
	}
	return "", nil
}

// only returns the one value of a header, and "" without it. Of two, another reader might take the other.
func only(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) > 1 {
		return "", malformed(name, "must not be there twice")
	}
	return header.Get(name), nil
}

// jsonOf returns the JSON of a body. Both hosts let people choose between JSON and a form whose field "payload" is the JSON.
func jsonOf(header http.Header, body []byte) ([]byte, error) {
	const name = "Content-Type"
	value, err := only(header, name)
	if err != nil {
		return nil, err
	}
	media := "application/json" // of a request that does not say
	if value != "" {
		if media, _, err = mime.ParseMediaType(value); err != nil {
			media = ""
		}
	}
	switch media {
	case "application/json":
		return body, nil
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil || len(form["payload"]) != 1 {
			return nil, malformed("body", `must be a form with one field "payload"`)
		}
		return []byte(form.Get("payload")), nil
	}
	return nil, malformed(name, "must be application/json or application/x-www-form-urlencoded")
}
