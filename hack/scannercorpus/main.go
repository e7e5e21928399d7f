// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scannercorpus reads the rules and the tests of public secret scanners and writes the secrets that
// TestCorpusFolder of package redact measures with. It runs nothing of the scanners. What it writes looks like secrets, so
// it stays out of this repository, but for a compressed part (test/corpus/scanners):
//
//	go run ./hack/scannercorpus -out FOLDER gitleaks=CLONE trufflehog=CLONE kingfisher=CLONE noseyparker=CLONE
//	go run ./hack/scannercorpus -out test/corpus/scanners -compressed gitleaks=CLONE kingfisher=CLONE noseyparker=CLONE
//
// # What is a sample
//
// These rules depend on the scanners alone, and were stated before anything was measured with them. What came later, after a
// look at the samples of one half, is in parentheses.
//
//  1. A rule counts if Go can parse its pattern and it describes a secret: noseyparker and kingfisher say so themselves
//     (category "identifier" without "secret"; "visible: false"; and the name, such as "Client ID" or "public key"). The
//     others show it by a name that ends in id, user, url, domain and the like (and ip, time, service). (A pattern within a
//     function is none.)
//  2. A sample is what the pattern captures (its group, or all; none if several groups have a text) from the rule's own
//     examples and tests, or from texts that are made from the pattern ("made", three for each rule; the pattern is read
//     as it is written, although it may ignore case: nobody issues DOP_V1_; and only if it says which characters the
//     secret has).
//  3. A sample is left out if the scanner would leave it out for its entropy, if it is shorter than 8 or longer than 2,000
//     bytes, if it has more than one line (or a line end as it is written in a string), or if it is a placeholder: fewer than 6
//     different characters, a run of 6 equal ones, a word such as "example" or "your" in it, or a variable.
//  4. A sample is distinctive if the pattern also matches it alone and no longer matches when each letter and digit is
//     replaced by another of its kind. All others are known by their context.
//  5. The texts in which a rule must find nothing (gitleaks' false positives, the negative examples of noseyparker and
//     kingfisher) are innocent for that rule. They can be the secrets of another one, so they are a measure, and no limit.
//  6. Half of the samples, chosen by a hash of the secret, may be looked at to improve the rules of package redact ("tune");
//     the figures of the other half ("held") are those that count.
package main

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/test/corpus"
)

// rule is a rule of a scanner with its own examples.
type rule struct {
	id       string // scanner:id
	pattern  string
	entropy  float64 // below which the scanner reports nothing
	examples []string
	// innocent are texts in which the scanner must find nothing by this rule.
	innocent []string
	// public is set if the rule describes no secret, and only its innocent texts are of use.
	public bool
}

// sample is a secret and the rule that finds it.
type sample struct{ rule, kind, secret string }

func main() {
	out := flag.String("out", "", "the folder to write to")
	compressed := flag.Bool("compressed", false, "write only the files of secrets, compressed")
	flag.Parse()
	if err := run(*out, *compressed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "scannercorpus:", err)
		os.Exit(1)
	}
}

func run(out string, compressed bool, clones []string) error {
	if out == "" || len(clones) == 0 {
		return errors.New("-out and at least one SCANNER=CLONE are needed")
	}
	readers := map[string]func(string) ([]rule, error){"gitleaks": gitleaks, "trufflehog": trufflehog, "kingfisher": fromYAML, "noseyparker": fromYAML}
	distinctive, context, innocent := map[string]sample{}, map[string]sample{}, map[string]sample{}
	for _, c := range clones {
		scanner, folder, _ := strings.Cut(c, "=")
		read := readers[scanner]
		if read == nil {
			return fmt.Errorf("%q: the scanner must be one of %q", c, slices.Sorted(maps.Keys(readers)))
		}
		rules, err := read(folder)
		if err != nil {
			return fmt.Errorf("%s: %w", scanner, err)
		}
		secrets, unreadable, without := 0, 0, 0
		for _, r := range rules {
			r.id = scanner + ":" + r.id
			r.spare(innocent)
			if r.public {
				continue
			}
			secrets++
			re, err := regexp.Compile(plain(r.pattern))
			if err != nil {
				unreadable++
				continue
			}
			if !r.sort(re, distinctive, context) {
				without++
			}
		}
		fmt.Printf("%s: %d rules of secrets, %d of them with a pattern that Go cannot parse, %d without a sample\n", scanner, secrets, unreadable, without)
	}
	if compressed {
		return errors.Join(write(filepath.Join(out, "distinctive.tsv.gz"), distinctive), write(filepath.Join(out, "context.tsv.gz"), context))
	}
	return errors.Join(write(filepath.Join(out, "distinctive.tsv"), distinctive), write(filepath.Join(out, "context.tsv"), context),
		write(filepath.Join(out, "innocent.tsv"), innocent))
}

// spare adds the texts in which the rule finds nothing.
func (r rule) spare(innocent map[string]sample) {
	for _, text := range r.innocent {
		if quoted := strconv.Quote(text); len(text) >= 8 && len(text) <= 20_000 {
			innocent[quoted] = sample{r.id, "negative", quoted}
		}
	}
}

// sort adds the samples of a rule to their class and reports whether there were any.
func (r rule) sort(re *regexp.Regexp, distinctive, context map[string]sample) bool {
	found := false
	add := func(kind, text string) {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			secret := captured(m)
			if !r.counts(secret) {
				continue
			}
			found = true
			class := context
			if matches(re, secret) && !otherMatches(re, secret) {
				class = distinctive
			}
			if _, known := class[secret]; !known {
				class[secret] = sample{r.id, kind, secret}
			}
		}
	}
	for _, e := range r.examples {
		add("example", e)
	}
	for seed := range uint64(3) {
		if !r.says() {
			break
		}
		add("made", corpus.Pattern(asWritten(plain(r.pattern)), seed))
	}
	return found
}

// says reports whether the pattern says which characters the secret has: what it captures, or all of it, has neither a dot
// nor a class of all but some characters. Texts that are made from other patterns are no secrets.
func (r rule) says() bool {
	re, err := syntax.Parse(plain(r.pattern), syntax.Perl)
	if err != nil {
		return false
	}
	if inner := group(re); inner != nil {
		re = inner
	}
	var bounded func(*syntax.Regexp) bool
	bounded = func(re *syntax.Regexp) bool {
		switch {
		case re.Op == syntax.OpAnyChar, re.Op == syntax.OpAnyCharNotNL, re.Op == syntax.OpCharClass && len(re.Rune) > 0 && re.Rune[len(re.Rune)-1] == utf8.MaxRune:
			return false
		}
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !bounded(sub) })
	}
	return bounded(re)
}

// group returns the first group of an expression.
func group(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpCapture {
		return re.Sub[0]
	}
	for _, sub := range re.Sub {
		if found := group(sub); found != nil {
			return found
		}
	}
	return nil
}

// captured returns the only group that has a text, all if there is none, and nothing if there are several.
func captured(match []string) string {
	groups := slices.DeleteFunc(slices.Clone(match[1:]), func(s string) bool { return s == "" })
	switch len(groups) {
	case 0:
		return match[0]
	case 1:
		return groups[0]
	}
	return ""
}

// ignoresCase finds the flag i of a pattern.
var ignoresCase = regexp.MustCompile(`\(\?([a-hj-z]*)i([a-z]*)(:|\))`)

// asWritten removes the flag that ignores case.
func asWritten(pattern string) string {
	return strings.ReplaceAll(ignoresCase.ReplaceAllString(pattern, "(?${1}${2}${3}"), "(?)", "")
}

// holders are words of values that stand for a secret.
var holders = regexp.MustCompile(`(?i)example|sample|placeholder|dummy|redacted|changeme|your|xxxx|\*\*\*|[$#%{]\{|^<.*>$|^\$[a-zA-Z_]+$`)

// written is a line end or a tab as it is written in a string, twice or more.
var written = regexp.MustCompile(`\\[rnt].*\\[rnt]`)

func (r rule) counts(secret string) bool {
	n := map[rune]int{}
	run, last, longest := 0, rune(0), 0
	for _, c := range secret {
		if n[c]++; c != last {
			run = 0
		}
		run, last = run+1, c
		longest = max(longest, run)
	}
	return len(secret) >= 8 && len(secret) <= 2000 && !strings.ContainsAny(secret, "\r\n\t") && !written.MatchString(secret) && len(n) >= 6 && longest < 6 &&
		!holders.MatchString(secret) && entropy(n, len(secret)) >= r.entropy
}

func entropy(n map[rune]int, of int) float64 {
	e := 0.0
	for _, count := range n {
		p := float64(count) / float64(of)
		e -= p * math.Log2(p)
	}
	return e
}

// matches reports whether the pattern finds the secret where nothing but white space is around it.
func matches(re *regexp.Regexp, secret string) bool {
	for _, m := range re.FindAllStringSubmatch(" "+secret+" ", -1) {
		if captured(m) == secret {
			return true
		}
	}
	return false
}

// otherMatches reports whether the pattern matches other letters and digits in place of those of the secret.
func otherMatches(re *regexp.Regexp, secret string) bool {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same corpus every time
	hexadecimal := strings.Trim(strings.ToLower(secret), "0123456789abcdef-") == ""
	letters := 26
	if hexadecimal {
		letters = 6
	}
	for range 20 {
		other := strings.Map(func(c rune) rune {
			switch {
			case c >= '0' && c <= '9':
				return '0' + rune(r.IntN(10))
			case c >= 'a' && c <= 'z':
				return 'a' + rune(r.IntN(letters))
			case c >= 'A' && c <= 'Z':
				return 'A' + rune(r.IntN(letters))
			}
			return c
		}, secret)
		if matches(re, other) {
			return true
		}
	}
	return false
}

func write(file string, samples map[string]sample) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var to io.WriteCloser = f
	if strings.HasSuffix(file, ".gz") {
		to = gzip.NewWriter(f)
	}
	w := bufio.NewWriter(to)
	for _, secret := range slices.Sorted(maps.Keys(samples)) {
		s := samples[secret]
		half := "tune"
		if sha256.Sum256([]byte(secret))[0]%2 == 1 {
			half = "held"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.rule, s.kind, s.secret, half)
	}
	fmt.Printf("%s: %d samples\n", file, len(samples))
	err = errors.Join(w.Flush(), to.Close()) // Flush returns the first error
	if io.Closer(to) != io.Closer(f) {
		err = errors.Join(err, f.Close())
	}
	return err
}

// plain removes the white space and comments of a pattern that has the flag x, which Go does not know.
func plain(pattern string) string {
	flags := regexp.MustCompile(`\(\?([a-z]*)x([a-z]*)\)`)
	if !flags.MatchString(pattern) {
		return pattern
	}
	pattern = flags.ReplaceAllString(pattern, "(?${1}${2})")
	pattern = strings.ReplaceAll(pattern, "(?)", "")
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			i++
			b.WriteByte(pattern[i])
		case class:
			class = c != ']'
			b.WriteByte(c)
		case c == '[':
			class = true
			b.WriteByte(c)
			if i+1 < len(pattern) && pattern[i+1] == ']' {
				i++
				b.WriteByte(']')
			}
		case strings.HasPrefix(pattern[i:], "(?#"):
			for i+1 < len(pattern) && pattern[i] != ')' {
				i++
			}
		case c == '#':
			for i+1 < len(pattern) && pattern[i+1] != '\n' {
				i++
			}
		case strings.IndexByte(" \t\r\n", c) >= 0:
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
