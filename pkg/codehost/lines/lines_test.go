// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package lines_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost/lines"
)

// below returns the lines up to a limit that a review may comment on.
func below(l lines.Lines, limit int) []int {
	var all []int
	for i := -2; i <= limit; i++ {
		if l.Has(i) {
			all = append(all, i)
		}
	}
	return all
}

func TestAddedLinesAndContextAreCommentable(t *testing.T) {
	for name, tc := range map[string]struct {
		patch string
		want  []int
	}{
		"one hunk":             {"@@ -3,3 +3,4 @@ func a() {\n a\n-b\n+c\n+d\n e\n", []int{3, 4, 5, 6}},
		"two hunks":            {"@@ -1,2 +1 @@\n a\n-b\n@@ -8 +7,2 @@\n c\n+d\n", []int{1, 7, 8}},
		"hunks that touch":     {"@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-c\n+d\n", []int{1, 2}},
		"new file":             {"@@ -0,0 +1,2 @@\n+a\n+b\n", []int{1, 2}},
		"removed file":         {"@@ -1,2 +0,0 @@\n-a\n-b\n", nil},
		"only removed":         {"@@ -5,2 +4,0 @@\n-a\n-b\n", nil},
		"with a file header":   {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", []int{1}},
		"CRLF":                 {"@@ -1,2 +1,3 @@\r\n a\r\n+b\r\n\r\n", []int{1, 2, 3}},
		"empty context line":   {"@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", []int{1, 2, 3}},
		"no newline at end":    {"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file", []int{1, 2}},
		"text like a header":   {"@@ -1,2 +1,3 @@\n a\n+@@ -50 +50 @@\n b\n", []int{1, 2, 3}},
		"text like a file":     {"@@ -1,2 +1,2 @@\n--- a/x\n+++ b/x\n c\n", []int{1, 2}},
		"empty":                {"", nil},
		"no hunk":              {"Binary files differ\n", nil},
		"only a header":        {"@@ -1,3 +1,3 @@", nil},
		"cut":                  {"@@ -1,9 +1,9 @@\n a\n+b", []int{1, 2}},
		"cut by another hunk":  {"@@ -1,9 +1,9 @@\n a\n@@ -20 +20 @@\n b\n", []int{1, 20}},
		"a huge count":         {"@@ -1 +1,2147483000 @@\n+a\n+b\n", []int{1, 2}},
		"more than counted":    {"@@ -1 +1 @@\n a\n b\n+c\n", []int{1}},
		"more added":           {"@@ -1,3 +1 @@\n+a\n+b\n", []int{1}},
		"text between":         {"@@ -1,3 +1,3 @@\n a\n?\n b\n", []int{1}},
		"backwards":            {"@@ -9 +9 @@\n a\n@@ -1 +1 @@\n b\n", []int{9}},
		"overlapping":          {"@@ -1,2 +1,2 @@\n a\n b\n@@ -2,2 +2,2 @@\n b\n c\n", []int{1, 2}},
		"empty between":        {"@@ -9,1 +9,0 @@\n-a\n@@ -1 +1 @@\n b\n", []int{1}},
		"line 0":               {"@@ -0 +0 @@\n+a\n", nil},
		"negative":             {"@@ --1 +-1 @@\n+a\n", nil},
		"a sign":               {"@@ -1 ++1 @@\n+a\n", nil},
		"too large":            {"@@ -1 +2147483647 @@\n+a\n", nil},
		"far too large":        {"@@ -1 +99999999999999999999,99999999999999999999 @@\n+a\n", nil},
		"no end of the header": {"@@ -1 +1\n+a\n", nil},
		"no new side":          {"@@ -1 @@\n+a\n", nil},
		"no numbers":           {"@@ - + @@\n+a\n@@ -, +, @@\n+a\n", nil},
		"three sides":          {"@@@ -1 -1 +1 @@@\n++a\n", nil},
		"after a bad header":   {"@@ -x +x @@\n+a\n@@ -5 +5 @@\n+b\n", []int{5}},
	} {
		if got := below(lines.Commentable(tc.patch), 60); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheLastLinesThatFitCount(t *testing.T) {
	l := lines.Commentable("@@ -1 +2147483646 @@\n+a\n")
	if !l.Has(2147483646) || l.Has(2147483645) || l.Has(2147483647) {
		t.Error(l)
	}
}

// A line that may be commented on is within a hunk as its header gives it, and the patch has at least as many lines.
func FuzzCommentable(f *testing.F) {
	for _, patch := range []string{
		"@@ -3,3 +3,4 @@ func a() {\n a\n-b\n+c\n+d\n e\n", "@@ -1,2 +1 @@\r\n a\r\n-b\r\n@@ -8 +7,2 @@\n c\n+d\n\\ No newline at end of file",
		"@@ -1 +1,2147483000 @@\n+a\n", "@@ -0,0 +1 @@\n+@@ -1 +50 @@\n", "@@ -9 +9 @@\n a\n@@ -1 +1 @@\n b\n", "@@@ -1 -1 +1 @@@\n",
	} {
		f.Add(patch)
	}
	header := regexp.MustCompile(`(?m)^@@ -[0-9,]+ \+([0-9]+)(?:,([0-9]+))? @@`)
	f.Fuzz(func(t *testing.T, patch string) {
		l := lines.Commentable(patch)
		inHunk := map[int]bool{}
		total := strings.Count(patch, "\n") + 1
		candidates := []int{-1, 0}
		for _, m := range header.FindAllStringSubmatch(patch, -1) {
			first, _ := strconv.Atoi(m[1])
			count := 1
			if m[2] != "" {
				count, _ = strconv.Atoi(m[2])
			}
			for i := range min(count, total) {
				inHunk[first+i] = true
			}
			candidates = append(candidates, first-1, first, first+count-1, first+count, first+min(count, total))
		}
		for i := range 1000 {
			candidates = append(candidates, i)
		}
		found := map[int]bool{}
		for _, i := range candidates {
			if l.Has(i) {
				found[i] = true
				if !inHunk[i] || i < 1 {
					t.Fatalf("%q: line %d is in no hunk", patch, i)
				}
			}
		}
		if len(found) > total {
			t.Fatalf("%q: %d lines", patch, len(found))
		}
	})
}
