// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// The native views of a log: its last lines, and its lines as events.
func TestLogViews(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	task, _ := s.RESTTask(t, "a")
	admin := s.Core(t)
	if err := admin.RESTClient().Post().AbsPath(standalone.TasksPath, "a", "log").Body([]byte("one\ntwo\r\nthree\nend")).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	viewer := s.REST(t, "default", "vi", "view")
	raw := func(query string) (string, error) {
		data, err := admin.RESTClient().Get().RequestURI(standalone.TasksPath + "/a/log" + query).Do(t.Context()).Raw()
		return string(data), err
	}
	for query, want := range map[string]string{
		"": "one\ntwo\r\nthree\nend", "?tailLines=2": "three\nend", "?tailLines=9&format=text": "one\ntwo\r\nthree\nend",
		"?format=events": "id: 4\ndata: one\n\nid: 9\ndata: two\n\nid: 15\ndata: three\n\nid: 18\ndata: end\n\n",
	} {
		if got, err := raw(query); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", query, got, err, want)
		}
	}
	for query, text := range map[string]string{
		"?tailLines=0": "tailLines: must be a number from 1 to 100000", "?tailLines=1&follow=true": "tailLines: cannot be used together with follow",
		"?format=xml": "must be text or events", "?follow=perhaps": "must be true or false",
	} {
		viewer.Get(standalone.TasksPath+"/a/log"+query).Want(t, 400, text)
	}

	body, err := admin.RESTClient().Get().RequestURI(standalone.TasksPath + "/a/log?follow=true&format=events").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	events := sse.NewReader(body, sse.Options{})
	for _, want := range []string{"one", "two", "three"} {
		if e, err := events.Next(); err != nil || e.Data != want {
			t.Fatalf("%+v %v, want %s", e, err, want)
		}
	}
	task = kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").Get(t.Context(), task.Name, metav1.GetOptions{}))
	task.Status.Phase = v1alpha1.TaskSucceeded
	kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").UpdateStatus(t.Context(), task, metav1.UpdateOptions{}))
	if e, err := events.Next(); err != nil || e.Data != "end" {
		t.Errorf("%+v %v", e, err)
	}
	if e, err := events.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %+v %v", e, err)
	}
	// A browser that reconnects goes on where it was. When it has everything it is told not to come back.
	for _, path := range []string{standalone.TasksPath + "/a/log?follow=true&format=events", "/api/v1/tasks/a/logs?follow=true"} {
		viewer.With(sse.LastEventID, "9").Get(path).Want(t, 200, "id: 15\ndata: three\n\nid: 18\ndata: end\n\n")
		viewer.With(sse.LastEventID, "18").Get(path).Want(t, 204)
		viewer.With(sse.LastEventID, "19").Get(path).Want(t, 200, "id: 0\nevent: gap\ndata: {\"fromSeq\":19,\"toSeq\":19,\"reason\":\"ahead\"}\n\nid: 4\ndata: one\n\n")
		viewer.With(sse.LastEventID, "x").Get(path).Want(t, 400, "must be a number from 0")
	}
}

// A transcript as text is every message, one JSON object a line, whatever the number of pages.
func TestTranscriptAsLines(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.Core(t)
	kit.Must[*v1alpha1.Session](t)(admin.Sessions("default").Create(t.Context(), &v1alpha1.Session{
		ObjectMeta: metav1.ObjectMeta{Name: "talk"}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat},
	}, metav1.CreateOptions{}))
	path := strings.TrimSuffix(standalone.TasksPath, "tasks") + "sessions/talk/transcript"
	viewer := s.REST(t, "default", "vi", "view")
	raw := func(query string) (string, error) {
		data, err := admin.RESTClient().Get().RequestURI(path + query).Do(t.Context()).Raw()
		return string(data), err
	}
	if got, err := raw("?format=lines"); err != nil || got != "" {
		t.Errorf("empty: %q %v", got, err)
	}
	var messages v1alpha1.SessionTranscript
	for i := range 600 {
		messages.Items = append(messages.Items, v1alpha1.SessionMessage{Role: v1alpha1.RoleUser, Content: fmt.Sprintf("<%d>\nü", i)})
	}
	kit.Must[*v1alpha1.SessionTranscript](t)(admin.Sessions("default").AppendMessages(t.Context(), "talk", &messages, metav1.CreateOptions{}))
	text, err := raw("?format=lines")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 600 {
		t.Fatalf("%d lines", len(lines))
	}
	var got []string
	for _, i := range []int{0, 599} {
		got = append(got, host.Decode[v1alpha1.SessionMessage](t, host.Answer{Body: lines[i]}).Content)
	}
	if d := cmp.Diff([]string{"<0>\nü", "<599>\nü"}, got); d != "" {
		t.Error(d)
	}
	for query, text := range map[string]string{"?format=xml": "must be lines", "?format=lines&limit=3": "format: cannot be used together with limit"} {
		viewer.Get(path+query).Want(t, 400, text)
	}
}
