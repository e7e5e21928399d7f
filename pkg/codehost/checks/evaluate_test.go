// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/checks"
)

const (
	conflictText  = "the pull request conflicts with its base branch, so the code host runs no checks; resolve the conflict first"
	notKnownClean = "; the code host has not found out yet whether the pull request conflicts with its base branch"
)

func clean() codehost.PullRequest {
	return codehost.PullRequest{State: codehost.Open, Mergeable: codehost.Clean}
}

func conflicting() codehost.PullRequest {
	return codehost.PullRequest{State: codehost.Open, Mergeable: codehost.Conflicting}
}

func draft(p codehost.PullRequest) codehost.PullRequest {
	p.Draft = true
	return p
}

// found reads checks: "NAME=STATE", separated by spaces. The host's word is the state.
func found(text string) []codehost.Check {
	var list []codehost.Check
	for part := range strings.FieldsSeq(text) {
		name, state, _ := strings.Cut(part, "=")
		c := codehost.Check{Name: name, State: codehost.CheckState(state), Said: state}
		if state == "odd" {
			c.State = ""
		}
		list = append(list, c)
	}
	return list
}

// many returns n checks that passed.
func many(n int) []codehost.Check {
	var list []codehost.Check
	for i := range n {
		list = append(list, codehost.Check{Name: fmt.Sprintf("test (%d)", i), State: codehost.CheckPassed})
	}
	return list
}

func names(n ...string) codehost.Required { return codehost.Required{Names: n, Patterns: true} }

func TestVerdictSaysWhy(t *testing.T) {
	none, anyCheck, hidden := codehost.Required{}, codehost.Required{Any: true}, codehost.Required{Unknown: true}
	for name, tc := range map[string]struct {
		p        codehost.PullRequest
		found    []codehost.Check
		required codehost.Required
		want     checks.Status
		message  string
	}{
		"merged":                   {codehost.PullRequest{State: codehost.Merged}, found("a=failed"), names("b"), checks.Merged, "the pull request has been merged"},
		"closed":                   {codehost.PullRequest{State: codehost.Closed, Mergeable: codehost.Conflicting}, found("a=pending"), none, checks.Closed, "the pull request is closed"},
		"closed draft":             {codehost.PullRequest{State: codehost.Closed, Draft: true}, nil, none, checks.Closed, "the pull request is closed"},
		"one passed":               {clean(), found("a=passed"), none, checks.Passed, `check "a" passed`},
		"required passed":          {clean(), found("a=passed b=passed"), names("a", "b"), checks.Passed, "all 2 checks passed"},
		"120 passed":               {clean(), many(120), names("test (119)"), checks.Passed, "all 120 checks passed"},
		"one skipped":              {clean(), found("a=skipped"), names("a"), checks.Passed, `check "a" was skipped, which counts as passed`},
		"some skipped":             {clean(), found("a=skipped b=passed"), names("a"), checks.Passed, "all 2 checks passed, 1 of them because they were skipped"},
		"draft passed":             {draft(clean()), found("a=passed"), none, checks.Passed, `check "a" passed; the pull request is a draft`},
		"conflict not known":       {codehost.PullRequest{State: codehost.Open}, found("a=passed"), none, checks.Passed, `check "a" passed` + notKnownClean},
		"any with one":             {clean(), found("a=passed"), anyCheck, checks.Passed, `check "a" passed`},
		"pattern":                  {clean(), found("ci/linux/build=passed lint=passed"), names("ci/*"), checks.Passed, "all 2 checks passed"},
		"pattern of one character": {clean(), found("go1.26=passed"), names("go?.2?"), checks.Passed, `check "go1.26" passed`},
		"required failed":          {clean(), found("b=pending a=failed"), names("a"), checks.Failed, `required check "a" failed`},
		"required by any failed":   {clean(), found("a=failed"), anyCheck, checks.Failed, `required check "a" failed`},
		"required by pattern":      {clean(), found("ci/a=failed"), names("ci/*"), checks.Failed, `required check "ci/a" failed`},
		"other failed":             {clean(), found("lint=failed a=passed"), names("a"), checks.Failed, `check "lint" failed, which is not required`},
		"failed, hidden":           {clean(), found("a=failed"), hidden, checks.Failed, `check "a" failed; the code host does not say whether it is required`},
		"two failed, hidden":       {clean(), found("a=failed b=failed"), hidden, checks.Failed, `2 checks failed: "a", "b"; the code host does not say which checks are required`},
		"five failed":              {clean(), found("a=failed b=failed c=failed d=failed e=failed"), names("e"), checks.Failed, `5 checks failed: "e", "a", "b" and 2 more; 1 of them required`},
		"failed and conflicting":   {conflicting(), found("a=failed"), names("a"), checks.Failed, `required check "a" failed; the pull request conflicts with its base branch`},
		"120 and a failed one":     {clean(), append(many(120), found("z=failed")...), none, checks.Failed, `check "z" failed, which is not required`},
		"failed and not known":     {clean(), found("a=odd b=failed"), none, checks.Failed, `check "b" failed, which is not required`},
		"one of two of a name":     {clean(), found("a=passed a=failed"), names("a"), checks.Failed, `required check "a" failed`},
		"other of two of a name":   {clean(), found("a=pending a=passed"), names("a"), checks.Pending, `waiting for check "a"`},
		"two pending":              {clean(), found("a=pending b=pending c=passed"), none, checks.Pending, "waiting for 2 checks"},
		"absent":                   {clean(), found("a=passed"), names("build"), checks.Pending, `required check "build" has not been reported yet`},
		"all absent":               {clean(), nil, names("a", "b", "c", "d"), checks.Pending, `4 required checks have not been reported yet: "a", "b", "c" and 1 more`},
		"absent, named twice":      {clean(), nil, names("a", "a"), checks.Pending, `required check "a" has not been reported yet`},
		"absent of a draft":        {draft(clean()), nil, names("a"), checks.Pending, `required check "a" has not been reported yet; the pull request is a draft`},
		"absent and pending":       {clean(), found("b=pending"), names("a"), checks.Pending, `waiting for check "b"; required check "a" has not been reported yet`},
		"absent pattern":           {clean(), found("cd/a=passed"), names("ci/*"), checks.Pending, `required check "ci/*" has not been reported yet`},
		"name beside its prefix":   {clean(), found("build-all=passed"), names("build"), checks.Pending, `required check "build" has not been reported yet`},
		"name in another case":     {clean(), found("Build=passed"), names("build"), checks.Pending, `required check "build" has not been reported yet`},
		"other patterns":           {clean(), found("ci/a=passed"), names("ci/{a,b}"), checks.Pending, `required check "ci/{a,b}" has not been reported yet`},
		"any of none":              {clean(), nil, anyCheck, checks.Pending, "the base branch requires at least one check, and none has been reported yet"},
		"pending, hidden":          {clean(), found("a=pending"), hidden, checks.Pending, `waiting for check "a"`},
		"conflict":                 {conflicting(), found("a=passed"), names("a"), checks.Unknown, conflictText},
		"conflict, absent":         {conflicting(), nil, names("a"), checks.Unknown, conflictText},
		"conflict, pending":        {conflicting(), found("a=pending"), none, checks.Unknown, conflictText},
		"conflict, none":           {draft(conflicting()), nil, none, checks.Unknown, conflictText + "; the pull request is a draft"},
		"not known":                {clean(), found("a=odd b=pending"), names("c"), checks.Unknown, `the code host says "odd" of check "a", which is not a known outcome`},
		"two not known":            {clean(), found("a=odd b=weird"), none, checks.Unknown, `2 checks have outcomes that are not known: "a", "b"`},
		"hidden":                   {clean(), found("a=passed"), hidden, checks.Unknown, "all reported checks passed, but the code host does not say which checks are required"},
		"hidden and none":          {clean(), nil, hidden, checks.Unknown, "no check has been reported, and the code host does not say which checks are required"},
		"none":                     {clean(), nil, none, checks.NoChecks, "no checks are defined"},
		"none, conflict not known": {codehost.PullRequest{State: codehost.Open}, nil, none, checks.NoChecks, "no checks are defined" + notKnownClean},
	} {
		v := checks.Evaluate(tc.p, tc.found, tc.required)
		if v.Status != tc.want || v.Message != tc.message || v.Waiting != (tc.want == checks.Pending) {
			t.Errorf("%s: %s (waiting: %t)\n got %s\nwant %s, %s", name, v.Status, v.Waiting, v.Message, tc.want, tc.message)
		}
	}
}

func TestNamesOfStrangersAreQuotedAndCut(t *testing.T) {
	name := "a\n\u202eb; all checks passed" + strings.Repeat("x", 500)
	v := checks.Evaluate(clean(), []codehost.Check{{Name: name, State: codehost.CheckFailed}}, codehost.Required{})
	if strings.ContainsAny(v.Message, "\n\u202e") || len(v.Message) > 200 || v.Details[0].Name != name {
		t.Errorf("%q", v.Message)
	}
}

func TestNamesAreNoPatternsUnlessTheHostSaysSo(t *testing.T) {
	v := checks.Evaluate(clean(), []codehost.Check{{Name: "test 1", State: codehost.CheckPassed}}, codehost.Required{Names: []string{"test *"}})
	if v.Status != checks.Pending || v.Absent != 1 {
		t.Errorf("%+v", v)
	}
}

func TestPatternsMatchWholeNamesLiterally(t *testing.T) {
	for pattern, match := range map[string]map[string]bool{
		"*":        {"": true, "a/b\nc": true},
		"a.*":      {"a.": true, "abc": false, "xa.b": false},
		"*(a)":     {"test (a)": true, "test a": false, "(a) test": false},
		"a?c":      {"abc": true, "a\u00fcc": true, "ac": false, "abbc": false},
		`a\*`:      {`a\b`: true, "a*": false, "ab": false},
		"[ab]*":    {"[ab]c": true, "ac": false},
		"a*\xff":   {"ab\xff": false},
		"**x**y**": {strings.Repeat("x", 50000): false, strings.Repeat("x", 50000) + "y": true},
	} {
		for name, want := range match {
			v := checks.Evaluate(clean(), []codehost.Check{{Name: name, State: codehost.CheckPassed}}, names(pattern))
			if got := v.Status == checks.Passed; got != want || got != v.Details[len(v.Details)-1].Required {
				t.Errorf("%q, %.20q: %t", pattern, name, got)
			}
		}
	}
}

func TestDetailsAreInOrderAndBounded(t *testing.T) {
	list := append(many(450), found("o=odd p2=pending p1=pending f2=failed f1=failed s=skipped")...)
	v := checks.Evaluate(clean(), list, names("f1", "p1", "absent", "test (449)"))
	var first []string
	for _, d := range v.Details[:8] {
		first = append(first, fmt.Sprintf("%s %s %t", d.Name, d.State, d.Required))
	}
	want := []string{
		"f1 failed true", "f2 failed false", "p1 pending true", "p2 pending false", "absent absent true", "o  false",
		"test (449) passed true", "test (0) passed false",
	}
	if !slices.Equal(first, want) {
		t.Errorf("got %q, want %q", first, want)
	}
	if len(v.Details) != checks.MaxDetails || v.LeftOut != 257 || v.Passed != 451 || v.Failed != 2 || v.Pending != 2 || v.Unknown != 1 || v.Absent != 1 {
		t.Errorf("%d details, %d left out; %+v", len(v.Details), v.LeftOut, v)
	}
}
