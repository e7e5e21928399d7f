// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Status is a status of a commit as the API describes it.
type Status struct {
	ID        int64  `json:"id"`
	State     string `json:"state"`
	Context   string `json:"context"`
	TargetURL string `json:"target_url"`
}

// CheckRun is a check run as the API describes it.
type CheckRun struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	Status     string     `json:"status"`
	Conclusion *string    `json:"conclusion"`
	HTMLURL    string     `json:"html_url"`
	StartedAt  *time.Time `json:"started_at"`
	App        ID         `json:"app"`
	CheckSuite ID         `json:"check_suite"`
}

// key tells the check runs of a commit apart.
func (c CheckRun) key() string { return fmt.Sprint(c.CheckSuite.ID, c.Name) }

// ID is an app or a suite of check runs, of which only the number matters.
type ID struct {
	ID int64 `json:"id"`
}

// Protection is what the rule of a branch itself requires.
type Protection struct {
	Off                bool // requires nothing, but is shown
	Contexts, ByChecks []string
	// Approvals is how many users have to approve the present head, and Strict is set if the head must have the branch in it.
	Approvals int
	Strict    bool
}

// Rule is a rule of a set of rules as the API describes it.
type Rule struct {
	Type       string          `json:"type"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// RequireChecks returns the rule that requires checks.
func RequireChecks(names ...string) Rule {
	var all []map[string]any
	for _, name := range names {
		all = append(all, map[string]any{"context": name, "integration_id": 15368})
	}
	raw, err := json.Marshal(map[string]any{"strict_required_status_checks_policy": false, "required_status_checks": all})
	if err != nil {
		panic(err)
	}
	return Rule{Type: "required_status_checks", Parameters: raw}
}

// Statuses sets a state of a status, or more, in this order.
func (h *Host) Statuses(sha string, all ...Status) {
	h.Change(func(s *State) {
		for _, status := range all {
			status.ID = h.next()
			s.Statuses[sha] = append(s.Statuses[sha], status)
		}
	})
}

// Runs makes check runs, in this order.
func (h *Host) Runs(sha string, all ...CheckRun) {
	h.Change(func(s *State) {
		for _, run := range all {
			run.ID = h.next()
			s.CheckRuns[sha] = append(s.CheckRuns[sha], run)
		}
	})
}

// commit serves the statuses and check runs of a commit.
func (h *Host) commit(w http.ResponseWriter, r *http.Request, path string) {
	sha, what, _ := strings.Cut(path, "/")
	statuses, runs := h.state.Statuses[sha], h.state.CheckRuns[sha]
	known := len(statuses)+len(runs) > 0 || slices.ContainsFunc(h.pulls, func(p *Pull) bool { return p.Head.SHA == sha })
	for _, head := range h.branches {
		known = known || head == sha
	}
	switch {
	case what == "status" && known:
		newest := latest(statuses, func(s Status) string { return s.Context })
		answer(w, http.StatusOK, map[string]any{"state": "pending", "sha": sha, "total_count": len(newest), "statuses": paged(h, w, r, newest)})
	case what == "check-runs" && known:
		if r.URL.Query().Get("filter") != "all" {
			runs = latest(runs, CheckRun.key)
		}
		answer(w, http.StatusOK, map[string]any{"total_count": len(runs), "check_runs": paged(h, w, r, runs)})
	case what == "check-runs":
		refuse(w, http.StatusUnprocessableEntity, "No commit found for SHA: "+sha)
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

// latest returns the last item of each key.
func latest[T any](all []T, key func(T) string) []T {
	out := []T{}
	for i, item := range all {
		if !slices.ContainsFunc(all[i+1:], func(later T) bool { return key(later) == key(item) }) {
			out = append(out, item)
		}
	}
	return out
}

// branch serves a branch with its protection.
func (h *Host) branch(w http.ResponseWriter, name string) {
	sha, ok := h.branches[name]
	if !ok {
		refuse(w, http.StatusNotFound, "Branch not found")
		return
	}
	p, protected := h.state.Protections[name]
	level, checks := "everyone", []map[string]any{}
	if p.Off || !protected {
		level = "off"
	}
	for _, name := range p.ByChecks {
		checks = append(checks, map[string]any{"context": name, "app_id": nil})
	}
	answer(w, http.StatusOK, map[string]any{
		"name": name, "commit": map[string]string{"sha": sha}, "protected": protected,
		"protection": map[string]any{"enabled": protected && !p.Off, "required_status_checks": map[string]any{
			"enforcement_level": level, "contexts": append([]string{}, p.Contexts...), "checks": checks,
		}},
	})
}

// missing returns a check that the branch of a pull request requires and that has not passed; empty if there is none.
func (h *Host) missing(p *Pull) string {
	rule := h.state.Protections[p.Base.Ref]
	for _, name := range append(slices.Clone(rule.Contexts), rule.ByChecks...) {
		passed := slices.ContainsFunc(latest(h.state.Statuses[p.Head.SHA], func(s Status) string { return s.Context }), func(s Status) bool {
			return s.Context == name && s.State == "success"
		})
		if !passed && !rule.Off {
			return name
		}
	}
	return ""
}
