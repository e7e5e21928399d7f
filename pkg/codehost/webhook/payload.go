// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"reflect"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/platform-ai/platform/pkg/jsonsize"
)

// payload is the body of both events, as far as it is read: https://docs.github.com/webhooks/webhook-events-and-payloads and
// modules/structs/hook.go of Gitea.
type payload struct {
	Action string `json:"action"`
	// Number is in the events of pull requests, and in all events of Gitea.
	Number *int64 `json:"number"`
	// Label is the one that GitHub says was added or removed.
	Label *label `json:"label"`
	// Changes has, among others, the labels that Gitea says were added and removed.
	Changes     *changes     `json:"changes"`
	Issue       *issue       `json:"issue"`
	PullRequest *pullRequest `json:"pull_request"`
	Repository  *repository  `json:"repository"`
	Sender      *user        `json:"sender"`
}

type label struct {
	Name string `json:"name"`
}

type changes struct {
	AddedLabels   []label `json:"added_labels"`
	RemovedLabels []label `json:"removed_labels"`
}

type issue struct {
	Number  int64   `json:"number"`
	Title   string  `json:"title"`
	Body    string  `json:"body"`
	HTMLURL string  `json:"html_url"`
	Labels  []label `json:"labels"`
	// PullRequest is there if the issue belongs to a pull request.
	PullRequest *struct{} `json:"pull_request"`
}

type pullRequest struct {
	Number  int64   `json:"number"`
	Title   string  `json:"title"`
	Body    string  `json:"body"`
	HTMLURL string  `json:"html_url"`
	Labels  []label `json:"labels"`
	Draft   bool    `json:"draft"`
	Merged  bool    `json:"merged"`
	Head    branch  `json:"head"`
	Base    branch  `json:"base"`
}

type branch struct {
	Ref string `json:"ref"`
	SHA string `json:"sha"`
	// Repo is null if the repository was deleted.
	Repo *repository `json:"repo"`
}

type repository struct {
	FullName      string `json:"full_name"`
	HTMLURL       string `json:"html_url"`
	DefaultBranch string `json:"default_branch"`
}

type user struct {
	Login string `json:"login"`
	Type  string `json:"type"`
}

// size bounds a body before it is decoded: an empty value of two bytes becomes one of many. The bodies of GitHub have some thousand
// values if an issue has all the labels and people that it may have.
var size = jsonsize.Bounds{Values: 20_000, Depth: 100}

// decode reads the JSON of a body. The errors of the decoder are not passed on, because they quote it.
func decode(body []byte) (*payload, error) {
	if !utf8.Valid(body) {
		return nil, malformed("body", "must be UTF-8")
	}
	if size.Check(body) != nil {
		return nil, malformed("body", "must have "+size.String())
	}
	var p *payload // null leaves it nil
	twice, err := kjson.UnmarshalStrict(body, &p, kjson.DisallowDuplicateFields)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return nil, malformed(wrong.Field, "must be "+typeName(wrong.Type.Kind()))
	case err != nil || p == nil:
		return nil, malformed("body", "must be one JSON object")
	case len(twice) > 0:
		return nil, malformed("body", "must not have a member twice")
	}
	return p, nil
}

// typeName describes the JSON that a member of a type takes.
func typeName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
