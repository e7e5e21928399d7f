// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapLines is how long ARCHITECTURE.md may be.
const mapLines = 300

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	span     = regexp.MustCompile("`([^`\n]+)`")
	inTree   = regexp.MustCompile(`^(artifacts|cmd|docs|hack|manifests|pkg|test)/[\w./{},*-]*$`)
	chosen   = strings.NewReplacer("KIND", "*", "NAME", "*", "VENDOR", "*") // what the reader of a document names
	choice   = regexp.MustCompile(`^(.*?)\{([^{}]*)\}(.*)$`)
)

// TestDocuments: links of documents lead to files and headings that exist, the paths that they name exist, and ARCHITECTURE.md stays
// a map. What CHANGELOG.md and docs/upgrading.md say about the past may name what is gone.
func TestDocuments(t *testing.T) {
	anchors := map[string]map[string]bool{} // of each document that links lead into
	for _, doc := range documents(t) {
		text := fenced.ReplaceAllString(read(t, doc), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			checkLink(t, anchors, doc, m[1])
		}
		if doc == "CHANGELOG.md" || doc == "docs/upgrading.md" {
			continue
		}
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			if !inTree.MatchString(m[1]) {
				continue
			}
			for _, path := range alternatives(chosen.Replace(m[1])) {
				if found, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which does not exist", doc, path)
				}
			}
		}
	}
	if n := strings.Count(read(t, "ARCHITECTURE.md"), "\n"); n > mapLines {
		t.Errorf("ARCHITECTURE.md is a map and has %d lines, more than %d: tell a mechanism in its package's comment", n, mapLines)
	}
}

// documents returns the Markdown files that people read.
func documents(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", "testdata", "third_party", "_output", ".git"}, name):
			return filepath.SkipDir
		case !d.IsDir() && filepath.Ext(name) == ".md":
			rel, err := filepath.Rel(root, path)
			all = append(all, rel)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func checkLink(t *testing.T, anchors map[string]map[string]bool, doc, to string) {
	t.Helper()
	if strings.Contains(to, "://") {
		return
	}
	path, anchor, _ := strings.Cut(to, "#")
	target := filepath.Join(filepath.Dir(doc), path)
	if path == "" {
		target = doc
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		t.Errorf("%s links to %s, which does not exist", doc, to)
		return
	}
	if anchor == "" {
		return
	}
	if anchors[target] == nil {
		anchors[target] = headings(read(t, target))
	}
	if !anchors[target][anchor] {
		t.Errorf("%s links to %s, which has no such heading", doc, to)
	}
}

// headings are the anchors of a document's headings.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if m := heading.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			all[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
		}
	}
	return all
}

// alternatives returns the paths that one with braces stands for.
func alternatives(path string) (all []string) {
	m := choice.FindStringSubmatch(path)
	if m == nil {
		return []string{path}
	}
	for part := range strings.SplitSeq(m[2], ",") {
		all = append(all, alternatives(m[1]+part+m[3])...)
	}
	return all
}
