// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxEvent bounds the body of one submitted event, in bytes (supplement D1 §4.2).
const maxEvent = 256 << 10

// ofStream are the query parameters of pages and streams that mean the same natively.
func ofStream(q url.Values) url.Values {
	out := url.Values{}
	for _, name := range []string{"after", "limit", "type"} {
		for _, v := range q[name] {
			out.Add(name, v)
		}
	}
	return out
}

// timeline serves a page or a stream of a task or session.
func timeline(resource, sub string, s shape) func(*call) error {
	return func(c *call) error {
		ns, err := c.namespace(c.query.Get("namespace"))
		if err != nil {
			return err
		}
		return c.pass(native{method: http.MethodGet, path: in(ns, resource, c.params["id"], sub), query: ofStream(c.query)}, s)
	}
}

// submit appends one event for a worker.
func submit(c *call) error {
	if t := c.params["streamType"]; t != string(v1alpha1.StreamTask) {
		return badRequest("streamType: %q: events are submitted to streams of type %s", t, v1alpha1.StreamTask)
	}
	ns, err := c.namespace(c.params["namespace"])
	if err != nil {
		return err
	}
	event, err := c.object(maxEvent, false, nil)
	if err != nil {
		return err
	}
	event["apiVersion"], event["kind"] = quoted(v1alpha1.SchemeGroupVersion.String()), quoted("ExecutionEvent")
	n, err := post(in(ns, "tasks", c.params["streamID"], "events"), event)
	if err != nil {
		return err
	}
	var stored struct {
		ID        string    `json:"id"`
		Seq       int64     `json:"seq"`
		CreatedAt time.Time `json:"createdAt"`
	}
	if err := c.fetch(n, &stored); err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, stored)
	return nil
}

// upload sends a worker's bytes on as they are.
func upload(path ...string) func(*call) error {
	return func(c *call) error {
		ns, err := c.namespace(c.params["namespace"])
		if err != nil {
			return err
		}
		segments := []string{"tasks", c.params["task"]}
		for _, s := range path {
			if name, param := c.params[s]; param {
				s = name
			}
			segments = append(segments, s)
		}
		if c.r.ContentLength > maxBody {
			return restError{code: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the body must be at most %d bytes", maxBody)}
		}
		contentType := c.r.Header.Get("Content-Type")
		if contentType == "" {
			contentType = "application/octet-stream"
		}
		body := http.MaxBytesReader(c.w, c.r.Body, maxBody)
		return c.pass(native{method: http.MethodPost, path: in(ns, segments...), body: body, contentType: contentType}, shape{})
	}
}

// quoted is a JSON string of plain text.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q", s)
	return b.Bytes()
}
