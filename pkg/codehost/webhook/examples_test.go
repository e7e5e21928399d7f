// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/codehost/webhook"
	"github.com/platform-ai/platform/pkg/visible"
	"github.com/platform-ai/platform/test/kit"
)

// examples are the deliveries of an event in GitHub's collection of examples.
type examples struct {
	Name     string            `json:"name"`
	Examples []json.RawMessage `json:"examples"`
}

// collected returns GitHub's examples of github.com and of the versions of GitHub Enterprise, by what they are of.
func collected(t *testing.T) map[string][]examples {
	t.Helper()
	kit.Needs(t, kit.Clients)
	files := kit.Must[[]string](t)(filepath.Glob("../../../test/githubapi/npm/node_modules/@octokit/webhooks-examples/*/index.json"))
	all := map[string][]examples{}
	for _, file := range files {
		var of []examples
		if err := json.Unmarshal(kit.Must[[]byte](t)(os.ReadFile(file)), &of); err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(filepath.Dir(file))] = of
	}
	if len(all["api.github.com"]) == 0 {
		t.Fatal("the examples are not installed: npm ci --prefix test/githubapi/npm")
	}
	return all
}

// at returns a member of decoded JSON; nil if there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

// text returns a member that is a text; empty if there is none.
func text(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

// expected returns what an example means, read from decoded JSON in other words than those of the package.
func expected(name string, v any) webhook.Event {
	e := webhook.Event{Name: name, Delivery: wantIssue.Delivery, Hook: wantIssue.Hook}
	of := map[string]string{"issues": "issue", "pull_request": "pull_request"}[name]
	if of == "" {
		return e
	}
	number, _ := at(v, of, "number").(float64)
	draft, _ := at(v, of, "draft").(bool)
	merged, _ := at(v, of, "merged").(bool)
	e.Kind, e.Number, e.Action, e.Title, e.URL = webhook.Kind(of), int64(number), text(v, "action"), text(v, of, "title"), text(v, of, "html_url")
	e.Body = clip.Text(visible.Plain(text(v, of, "body")), webhook.MaxBody)
	e.Repository, e.RepositoryURL, e.DefaultBranch = text(v, "repository", "full_name"), text(v, "repository", "html_url"), text(v, "repository", "default_branch")
	e.Sender, e.SenderType = text(v, "sender", "login"), text(v, "sender", "type")
	for i := 0; at(v, of, "labels", i) != nil; i++ {
		e.AllLabels = append(e.AllLabels, text(v, of, "labels", i, "name"))
	}
	if at(v, "label") != nil {
		e.Labels = []string{text(v, "label", "name")}
	}
	if e.Kind == webhook.Issue {
		e.IsPullRequest = at(v, of, "pull_request") != nil
	} else {
		e.HeadRef, e.HeadSHA, e.HeadRepository = text(v, of, "head", "ref"), text(v, of, "head", "sha"), text(v, of, "head", "repo", "full_name")
		e.BaseRef, e.Draft, e.Merged = text(v, of, "base", "ref"), draft, merged
	}
	return e
}

// TestExamples: every example of GitHub is an event that says what the example says.
func TestExamples(t *testing.T) {
	subjects, rest, seen := 0, 0, map[string]bool{}
	for host, all := range collected(t) {
		for _, of := range all {
			for i, body := range of.Examples {
				var v any
				if err := json.Unmarshal(body, &v); err != nil {
					t.Fatal(err)
				}
				got, err := webhook.Parse(headers(of.Name), body)
				if want := expected(of.Name, v); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s, example %d of %s: %v, got\n%+v, want\n%+v", host, i, of.Name, err, got, want)
				}
				if fault := outside(got); fault != "" {
					t.Errorf("%s, example %d of %s: %s", host, i, of.Name, fault)
				}
				if got.Kind == "" {
					rest++
				} else {
					subjects++
					seen[of.Name+" "+got.Action] = true
				}
			}
		}
	}
	for _, what := range []string{"issues opened", "issues labeled", "issues unlabeled", "issues edited", "pull_request opened", "pull_request labeled", "pull_request synchronize", "pull_request ready_for_review", "pull_request closed"} {
		if !seen[what] {
			t.Errorf("there is no example of %s", what)
		}
	}
	t.Logf("%d examples are about issues and pull requests, in %d actions, and %d are not", subjects, len(seen), rest)
}

// TestMutations: an example that was changed in any way is an event within the bounds, or malformed.
func TestMutations(t *testing.T) {
	const many, seed = 10_000, 20261129
	random := rand.New(rand.NewPCG(seed, seed))
	var subjects []examples
	for _, of := range collected(t)["api.github.com"] {
		if of.Name == "issues" || of.Name == "pull_request" {
			subjects = append(subjects, of)
		}
	}
	events := 0
	for n := range many {
		of := subjects[n%len(subjects)]
		body := mutate(t, random, of.Examples[random.IntN(len(of.Examples))])
		event, err := parsed(headers(of.Name), body)
		if err != nil {
			t.Fatalf("mutation %d of seed %d: %v", n, seed, err)
		}
		if event {
			events++
		}
	}
	t.Logf("of %d, %d are events", many, events)
	if events < many/20 || events > many*19/20 {
		t.Error("the mutations are too large or too small to say much")
	}
}

// read are the names of members that Parse reads, and of some beside them.
var read = []string{
	"action", "number", "label", "changes", "issue", "pull_request", "repository", "sender", "title", "html_url", "labels", "name", "draft", "merged", "head", "base", "ref", "sha", "repo",
	"full_name", "default_branch", "login", "type", "added_labels", "body", "user",
}

// others are what members become.
var others = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e400`, `9223372036854775807`, `""`, `"x"`, `"a/b"`, `"../.."`, `"-x"`, `"a\u0000b"`, `"\ud800"`, "\"\xff\"", `"a b"`, `[]`, `{}`, `[{}]`, `[{"name":"x"}]`, `[[[]]]`,
	`{"name":"x"}`, `{"full_name":"a/b"}`, `"label_updated"`, `"label_cleared"`, `"synchronized"`, `"https://user:secret@example.com/a/b"`, `{"added_labels":[{"name":"x"}]}`,
}

// mutate returns a body with up to two members that are removed, have another value or are there twice. Some have wrong bytes, too, or
// end early.
func mutate(t *testing.T, random *rand.Rand, body []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	var all []member
	find(v, "", &all)
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.path, b.path) }) // maps have another order in each run
	var marks, values []string
	for i := range random.IntN(3) {
		m := choose(random, all)
		value := choose(random, others)
		switch random.IntN(3) {
		case 0:
			delete(m.in, m.name)
			continue
		case 1:
			value = fmt.Sprintf("%s,%q:%s", value, m.name, kit.Must[[]byte](t)(json.Marshal(m.in[m.name])))
		}
		mark := fmt.Sprintf("a mark, because json.Marshal would not write this: %d", i)
		m.in[m.name] = mark
		marks, values = append(marks, strconv.Quote(mark)), append(values, value)
	}
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for i, mark := range marks {
		body = bytes.Replace(body, []byte(mark), []byte(values[i]), 1)
	}
	switch random.IntN(6) {
	case 0:
		for range 1 + random.IntN(4) {
			body[random.IntN(len(body))] ^= byte(1 << random.IntN(8))
		}
	case 1:
		if random.IntN(4) == 0 {
			body = body[:random.IntN(len(body))]
		}
	}
	return body
}

func choose[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

// member is a member of an object somewhere in decoded JSON.
type member struct {
	in         map[string]any
	name, path string
}

// find adds the members of all objects in decoded JSON: those that Parse reads, and one of ten others.
func find(v any, path string, all *[]member) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			at := path + "/" + name
			if slices.Contains(read, name) || len(at)%10 == 0 {
				*all = append(*all, member{v, name, at})
			}
			find(value, at, all)
		}
	case []any:
		for i, value := range v {
			find(value, path+"/"+strconv.Itoa(i), all)
		}
	}
}
