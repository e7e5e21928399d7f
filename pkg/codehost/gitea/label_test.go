// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
)

// TestRemoveLabel: labels are removed by their ids, all of one name and no other.
func TestRemoveLabel(t *testing.T) {
	h, requests := server(t, map[string]http.HandlerFunc{
		"/issues/1/labels":   says(`[{"id":7,"name":"bug"},{"id":8,"name":"bugs"},{"id":9,"name":"Bug"}]`),
		"/issues/1/labels/7": status(204, ""), "/issues/1/labels/9": status(204, ""),
	})
	if err := h.RemoveLabel(t.Context(), 1, "bug"); err != nil {
		t.Error(err)
	}
	if err := h.RemoveLabel(t.Context(), 1, "other"); err != nil {
		t.Error(err)
	}
	if want := []string{"GET /issues/1/labels", "DELETE /issues/1/labels/7", "DELETE /issues/1/labels/9", "GET /issues/1/labels"}; !slices.Equal(*requests, want) {
		t.Errorf("%q, want %q", *requests, want)
	}
	if err := h.RemoveLabel(t.Context(), 1, "bugs"); !errors.Is(err, codehost.ErrNotFound) {
		t.Error(err)
	}
	if err := h.RemoveLabel(t.Context(), 1, " "); !errors.Is(err, codehost.ErrRefused) {
		t.Error(err)
	}
}

// TestLabeling: the last event of each label decides, wherever in the list it is.
func TestLabeling(t *testing.T) {
	type label struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	type user struct {
		Login string `json:"login"`
	}
	type happened struct {
		ID      int64     `json:"id"`
		Type    string    `json:"type"`
		Body    string    `json:"body"`
		User    *user     `json:"user"`
		Label   *label    `json:"label"`
		Created time.Time `json:"created_at"`
	}
	at := time.Unix(1767323045, 0).UTC()
	bug, org := &label{7, "bug"}, &label{8, "Bug"}
	set := func(l *label, who string) happened { return happened{0, "label", "1", &user{who}, l, at} }
	unset := func(l *label, who string) happened { return happened{0, "label", "", &user{who}, l, at} }
	other := happened{0, "comment", "1", &user{"rita"}, nil, at}
	for _, c := range []struct {
		name  string
		pages [][]happened
		want  string
		err   error
	}{
		{"once", [][]happened{{other, set(bug, "ada")}}, "ada", nil},
		{"again", [][]happened{{set(bug, "ada"), unset(bug, "rita")}, {set(bug, "noor")}}, "noor", nil},
		{"removed", [][]happened{{set(bug, "ada")}, {unset(bug, "rita")}}, "", codehost.ErrNotFound},
		{"two of one name", [][]happened{{set(bug, "ada"), set(org, "noor")}, {unset(bug, "rita")}}, "noor", nil},
		{"the other one", [][]happened{{set(bug, "ada"), set(org, "noor")}, {unset(org, "rita")}}, "ada", nil},
		{"after pages with nothing to show", [][]happened{{set(bug, "ada")}, {}, {}, {unset(bug, "rita"), set(bug, "noor")}}, "noor", nil},
		{"another label", [][]happened{{set(&label{9, "bugs"}, "ada"), set(nil, "ada")}}, "", codehost.ErrNotFound},
		{"nobody", [][]happened{{set(bug, "")}}, "", codehost.ErrNotFound},
		{"no user", [][]happened{{{0, "label", "1", nil, bug, at}}}, "", codehost.ErrNotFound},
		{"no time", [][]happened{{{0, "label", "1", &user{"ada"}, bug, time.Time{}}}}, "", codehost.ErrUnavailable},
		{"nothing", nil, "", codehost.ErrNotFound},
	} {
		h, requests := server(t, map[string]http.HandlerFunc{"/issues/1": says(`{"number":1,"state":"open"}`), "/issues/1/timeline": func(w http.ResponseWriter, r *http.Request) {
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			if r.URL.Query().Get("limit") != "50" || page < 1 {
				t.Error(r.URL)
			}
			some := []happened{}
			if page <= len(c.pages) {
				some = c.pages[page-1]
			}
			for i := range some {
				some[i].ID = int64(10*page + i)
			}
			w.Header().Set("X-Total-Count", strconv.Itoa(len(some)))
			_ = json.NewEncoder(w).Encode(some)
		}})
		by, err := h.Labeling(t.Context(), 1, "bug")
		if !errors.Is(err, c.err) || by.Login != c.want || err == nil && !by.At.Equal(at) {
			t.Errorf("%s: %+v %v, want %s %v", c.name, by, err, c.want, c.err)
		}
		if want := len(c.pages) + 3; len(*requests) != want && !errors.Is(err, codehost.ErrUnavailable) {
			t.Errorf("%s: %d requests, want %d", c.name, len(*requests), want)
		}
	}
}
