// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// sessionFigures are what a session's row and its detail share (supplement D2 §4.3). Tokens that nobody reported are
// left out: they are not zero.
type sessionFigures struct {
	Name         string      `json:"name"`
	Namespace    string      `json:"namespace"`
	MessageCount int32       `json:"messageCount"`
	InputTokens  *int64      `json:"inputTokens,omitempty"`
	OutputTokens *int64      `json:"outputTokens,omitempty"`
	ActiveTask   string      `json:"activeTask"`
	CreatedAt    metav1.Time `json:"createdAt"`
	UpdatedAt    metav1.Time `json:"updatedAt"`
}

func figuresOf(s *v1alpha1.Session) sessionFigures {
	out := sessionFigures{
		Name: s.Name, Namespace: s.Namespace, MessageCount: s.Status.MessageCount, InputTokens: s.Status.InputTokens,
		OutputTokens: s.Status.OutputTokens, ActiveTask: s.Status.ActiveTask, CreatedAt: s.CreationTimestamp, UpdatedAt: s.CreationTimestamp,
	}
	if s.Status.UpdatedAt != nil {
		out.UpdatedAt = *s.Status.UpdatedAt
	}
	return out
}

type sessionRow struct {
	ID          string               `json:"id"`
	SessionType v1alpha1.SessionType `json:"sessionType"`
	sessionFigures
}

// listSessions lists all, without pages. Sessions of gateways belong to their gateway.
func listSessions(c *call) error {
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	out := struct {
		Items    []sessionRow `json:"items"`
		Metadata struct{}     `json:"metadata"`
	}{Items: []sessionRow{}}
	q := url.Values{"limit": {strconv.Itoa(maxLimit)}, "fieldSelector": {"spec.sessionType!=" + string(v1alpha1.SessionTypeGateway)}}
	for {
		var list v1alpha1.SessionList
		if err := c.fetch(native{method: http.MethodGet, path: in(ns, "sessions"), query: q}, &list); err != nil {
			return err
		}
		for i := range list.Items {
			s := &list.Items[i]
			out.Items = append(out.Items, sessionRow{ID: s.Name, SessionType: s.Spec.SessionType, sessionFigures: figuresOf(s)})
		}
		if list.Continue == "" {
			reply(c.w, http.StatusOK, out)
			return nil
		}
		q.Set("continue", list.Continue)
	}
}

// session reads the session that the path names. One of a gateway is not to be found here.
func (c *call) session(ns string) (*v1alpha1.Session, error) {
	var s v1alpha1.Session
	if err := c.fetch(native{method: http.MethodGet, path: in(ns, "sessions", c.params["id"])}, &s); err != nil {
		return nil, err
	}
	if s.Spec.SessionType == v1alpha1.SessionTypeGateway {
		return nil, restError{code: http.StatusNotFound, message: fmt.Sprintf("%s %q not found", v1alpha1.Resource("sessions"), s.Name)}
	}
	return &s, nil
}

func getSession(c *call) error {
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	s, err := c.session(ns)
	if err != nil {
		return err
	}
	text, err := c.transcript(ns)
	if err != nil {
		return err
	}
	reply(c.w, http.StatusOK, struct {
		sessionFigures
		Transcript       string                            `json:"transcript"`
		ExecutionControl *v1alpha1.SessionExecutionControl `json:"executionControl,omitempty"`
	}{figuresOf(s), text, s.Status.ExecutionControl})
	return nil
}

// transcript is all messages, one JSON object a line. The server bounds a transcript, so it fits into memory.
func (c *call) transcript(ns string) (string, error) {
	var text strings.Builder
	q := url.Values{"limit": {strconv.Itoa(maxLimit)}}
	for {
		var page struct {
			Metadata metav1.ListMeta
			Items    []json.RawMessage
		}
		n := native{method: http.MethodGet, path: in(ns, "sessions", c.params["id"], "transcript"), query: q}
		if err := c.fetch(n, &page); err != nil {
			return "", err
		}
		for _, m := range page.Items {
			var line bytes.Buffer
			if err := json.Compact(&line, m); err != nil {
				return "", fmt.Errorf("message of a transcript: %w", err)
			}
			line.WriteByte('\n')
			text.Write(line.Bytes())
		}
		if page.Metadata.Continue == "" {
			return text.String(), nil
		}
		q.Set("continue", page.Metadata.Continue)
	}
}

func deleteSession(c *call) error {
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	s, err := c.session(ns)
	if err != nil {
		return err
	}
	body, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
	if err != nil {
		return fmt.Errorf("delete options: %w", err)
	}
	n := native{method: http.MethodDelete, path: in(ns, "sessions", c.params["id"]), body: bytes.NewReader(body)}
	if err := c.fetch(n, nil); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
