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

// below serves what is natively at the task or session as well, with the query parameters that mean the same there.
func below(resource, sub string, s shape, params ...string) func(*call) error {
	return func(c *call) error {
		ns, err := c.namespace(c.query.Get("namespace"))
		if err != nil {
			return err
		}
		q := url.Values{}
		for _, name := range params {
			if values, has := c.query[name]; has {
				q[name] = values
			}
		}
		return c.pass(native{method: http.MethodGet, path: in(ns, resource, c.params["id"], sub), query: q}, s)
	}
}

// events is a page of a stream, and stream the stream itself. The header Last-Event-ID goes along with the others.
func events(resource string) func(*call) error {
	return below(resource, "events", plain(), "after", "limit", "type")
}

func stream(resource string) func(*call) error {
	return below(resource, "stream", shape{}, "after", "type")
}

// trace keeps the metadata, which is there only where there is more.
func trace() func(*call) error {
	return below("tasks", "trace", without("kind", "apiVersion"), "timeline", "limit", "continue")
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
	e, err := c.object(false, nil)
	if err != nil {
		return err
	}
	e["apiVersion"], e["kind"] = quoted(v1alpha1.SchemeGroupVersion.String()), quoted("ExecutionEvent")
	n, err := post(in(ns, "tasks", c.params["streamID"], "events"), e)
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
		if err := c.admit(); err != nil {
			return err
		}
		contentType := c.r.Header.Get("Content-Type")
		if contentType == "" {
			contentType = "application/octet-stream"
		}
		// The native path has the same limit, and an answer of its own for what has no declared length.
		return c.pass(native{method: http.MethodPost, path: in(ns, segments...), body: c.r.Body, contentType: contentType}, shape{})
	}
}

// quoted is a JSON string of plain text.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q", s)
	return b.Bytes()
}
