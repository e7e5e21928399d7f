// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Event is an event of an issue or a pull request as the API describes it: that a label was set or removed.
type Event struct {
	ID        int64     `json:"id"`
	Event     string    `json:"event"`
	Actor     *User     `json:"actor"`
	Label     *Label    `json:"label,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// labelsOf returns the labels of an issue or pull request.
func (h *Host) labelsOf(n int64) *[]Label {
	if i := slices.IndexFunc(h.state.Issues, func(i *Issue) bool { return i.Number == n }); i >= 0 {
		return &h.state.Issues[i].Labels
	}
	return &h.numbered(n).Labels
}

// named returns a function that recognises a label, in whose name upper and lower case are the same.
func named(name string) func(Label) bool {
	return func(l Label) bool { return strings.EqualFold(l.Name, name) }
}

// relabel sets or removes a label, unless that is so already.
func (h *Host) relabel(n int64, name string, set bool, by *User) {
	labels := h.labelsOf(n)
	if slices.ContainsFunc(*labels, named(name)) == set {
		return
	}
	word := "unlabeled"
	if *labels = slices.DeleteFunc(*labels, named(name)); set {
		word, *labels = "labeled", append(*labels, Label{Name: name})
	}
	h.state.Events[n] = append(h.state.Events[n], Event{ID: h.next(), Event: word, Actor: by, Label: &Label{Name: name}, CreatedAt: time.Now().UTC()})
}

func (h *Host) unlabel(w http.ResponseWriter, r *http.Request, n int64, name string) {
	if !slices.ContainsFunc(*h.labelsOf(n), named(name)) {
		refuse(w, http.StatusNotFound, "Label does not exist")
		return
	}
	h.relabel(n, name, false, h.sender(r))
	answer(w, http.StatusOK, *h.labelsOf(n))
}
