// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/webhook"
)

var (
	visibleASCII   = regexp.MustCompile(`^[!-~]{0,128}$`)
	repositoryName = regexp.MustCompile(`^[\w.][\w.-]{0,127}/[\w.][\w.-]{0,127}$`)
	commitName     = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})?$`)
	branchName     = regexp.MustCompile(`^[^\x00-\x20\x7f~^:?*\[\\-][^\x00-\x20\x7f~^:?*\[\\]*$`)
	labelName      = regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`)
	actionName     = regexp.MustCompile(`^[a-z_]{1,64}$`)
	userName       = regexp.MustCompile(`^(\w[\w.-]{0,127}(\[bot])?)?$`)
)

// outside describes in what an event is not as Event says; empty if it is. What it says is written here once more, in other words.
func outside(e webhook.Event) string {
	var faults []string
	must := func(what string, ok bool) {
		if !ok {
			faults = append(faults, what)
		}
	}
	branch := func(s string) bool {
		return branchName.MatchString(s) && len(s) <= 512 && !strings.Contains(s, "..") && !strings.Contains(s, "//") && strings.Trim(s, "/") == s
	}
	texts := append([]string{e.Delivery, e.Hook, e.Name, e.Action, e.Repository, e.RepositoryURL, e.DefaultBranch, e.Title, e.Body, e.URL, e.Sender, e.SenderType, e.HeadRef, e.HeadSHA, e.HeadRepository, e.BaseRef}, append(e.Labels, e.AllLabels...)...)
	for _, text := range texts {
		must("text", utf8.ValidString(text) && !strings.ContainsRune(text, 0))
	}
	must("headers", e.Name != "" && visibleASCII.MatchString(e.Name) && visibleASCII.MatchString(e.Delivery) && visibleASCII.MatchString(e.Hook) && strings.Trim(e.Hook, "0123456789") == "")
	switch e.Kind {
	case "":
		must("empty", reflect.DeepEqual(e, webhook.Event{Name: e.Name, Delivery: e.Delivery, Hook: e.Hook, Gitea: e.Gitea}))
		must("kind", e.Name != "issues" && e.Name != "pull_request")
		return strings.Join(faults, ", ")
	case webhook.Issue:
		must("issue", e.Name == "issues" && e.HeadRef+e.HeadSHA+e.HeadRepository+e.BaseRef == "" && !e.Draft && !e.Merged)
	case webhook.PullRequest:
		must("pull request", e.Name == "pull_request" && branch(e.HeadRef) && branch(e.BaseRef) && !e.IsPullRequest)
	default:
		must("kind", false)
	}
	must("action", actionName.MatchString(e.Action) && e.Action != "synchronized" && e.Action != "label_cleared")
	must("labels", len(e.Labels) <= 32 && len(e.AllLabels) <= 100 && (len(e.Labels) == 0 || e.Action == webhook.Labeled || e.Action == webhook.Unlabeled))
	for _, label := range append(e.Labels, e.AllLabels...) {
		must("label", labelName.MatchString(label) && len(label) <= 1024)
	}
	must("repository", repositoryName.MatchString(e.Repository) && !strings.Contains(e.Repository, "..") && (e.HeadRepository == "" || repositoryName.MatchString(e.HeadRepository)))
	if e.RepositoryURL != "" {
		a, err := codehost.ParseAddress(e.RepositoryURL)
		must("address", err == nil && a.Owner+"/"+a.Name == e.Repository && len(e.RepositoryURL) <= 2048)
	}
	if e.URL != "" {
		u, err := url.Parse(e.URL)
		must("URL", err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.User == nil && len(e.URL) <= 2048)
	}
	must("default branch", e.DefaultBranch == "" || branch(e.DefaultBranch))
	must("number", e.Number >= 1)
	must("title", len(e.Title) <= 1024 && len(e.Body) <= 16384)
	must("sender", userName.MatchString(e.Sender) && len(e.Sender) <= 133 && len(e.SenderType) <= 64 && !strings.ContainsAny(e.SenderType, " \t\n\x7f"))
	must("commit", commitName.MatchString(e.HeadSHA))
	return strings.Join(faults, ", ")
}

// parsed reports whether a delivery is an event. The error says how it is neither an event within the bounds nor malformed, as a short
// text of ours says.
func parsed(header http.Header, body []byte) (bool, error) {
	e, err := webhook.Parse(header, body)
	if err != nil {
		if !errors.Is(err, webhook.ErrMalformed) || !reflect.DeepEqual(e, webhook.Event{}) || !ours.MatchString(err.Error()) {
			return false, fmt.Errorf("%w, with %+v", err, e)
		}
		return false, nil
	}
	if fault := outside(e); fault != "" {
		return true, fmt.Errorf("%s: %+v", fault, e)
	}
	return true, nil
}

// ours matches what errors say: the name of a header or a member, and words without anything that was sent.
var ours = regexp.MustCompile(`^the delivery is malformed: (X-[A-Za-z-]+|Content-Type|[a-z_.]+): must [a-zA-Z0-9 ,:.()/"'_[\]-]{1,200}$`)

// FuzzParse: whatever is delivered, it is an event within the bounds, or malformed.
func FuzzParse(f *testing.F) {
	form := func(body string) []byte { return []byte(url.Values{"payload": {body}}.Encode()) }
	issue := object(`"action":"labeled"`, githubIssue, `"label":{"name":"bug"}`, githubRepository, githubSender)
	pull := object(`"action":"synchronized"`, `"number":2`, giteaPull, giteaRepository, giteaSender)
	f.Add("issues", "1", "1", "application/json", []byte(issue))
	f.Add("issues", "1", "1", "application/x-www-form-urlencoded", form(issue))
	f.Add("pull_request", "1", "", "", []byte(pull))
	f.Add("pull_request", "1", "", "application/json; charset=utf-8", []byte(object(`"action":"opened"`, githubPull, githubRepository, githubSender)))
	f.Add("issues", "", "", "application/json", []byte(object(`"action":"label_updated"`, `"changes":{"added_labels":[`+giteaAgent+`]}`, giteaIssue(giteaBug), giteaRepository, giteaSender)))
	f.Add("ping", "1", "1", "application/json", []byte(`{"zen":"words"}`))
	f.Fuzz(func(t *testing.T, event, delivery, hook, media string, body []byte) {
		if _, err := parsed(headers(event, "X-GitHub-Delivery", delivery, "X-GitHub-Hook-ID", hook, "Content-Type", media), body); err != nil {
			t.Error(err)
		}
	})
}
