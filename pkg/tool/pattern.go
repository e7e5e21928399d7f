// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The patterns of JSON Schema are regular expressions of ECMAScript. Those that Go's regexp can match, in time that is linear, are
// checked. Vendors and servers also take what it cannot: look-ahead, look-behind, references to groups, more than 1,000
// repetitions. Such a pattern stays in the schema that the model reads, and the arguments are checked without it: whoever gets
// the call checks them, too.

// unchecked is a pattern that cannot be checked here.
type unchecked string

func (unchecked) MatchString(string) bool { return true }
func (u unchecked) String() string        { return string(u) }

// compiledPattern is a pattern with the text that its author wrote.
type compiledPattern struct {
	*regexp.Regexp

	text string
}

func (p compiledPattern) String() string { return p.text }

// compilePattern returns a pattern. It returns an error for what is no regular expression.
func compilePattern(text string) (jsonschema.Regexp, error) {
	translated, exact := translate(text)
	re, err := regexp.Compile(translated)
	switch {
	case err == nil && exact:
		return compiledPattern{re, text}, nil
	case err == nil || isECMA(text):
		return unchecked(text), nil
	}
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		err = errors.New(string(e.Code))
	}
	return nil, err
}

// codes finds escapes; those of a character by its number are written otherwise in Go.
var codes = regexp.MustCompile(`\\u\{[0-9A-Fa-f]+\}|\\u[0-9A-Fa-f]{4}|\\[\s\S]`)

// translate writes a pattern for Go. It reports false if Go would match something else: ECMAScript can match half a character.
func translate(text string) (string, bool) {
	exact := true
	return codes.ReplaceAllStringFunc(text, func(s string) string {
		code, ok := strings.CutPrefix(s, `\u`)
		if !ok || code == "" {
			return s
		}
		code = strings.Trim(code, "{}")
		if n, err := strconv.ParseUint(code, 16, 32); err != nil || n >= 0xD800 && n < 0xE000 {
			exact = false
		}
		return `\x{` + code + `}`
	}), exact
}

// beyond finds the parts of a pattern in which ECMAScript and Go differ: escapes, classes, the beginnings of groups, and counts.
var beyond = regexp.MustCompile(`\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\k<[^>]*>|\\[\s\S]|\[\^?(?:\\[\s\S]|[^\]\\])*\]|\(\?(?:[=!:]|<[=!]|<[A-Za-z_$][\w$]*>)|\{\d+(?:,\d*)?\}`)

// isECMA reports whether a pattern is one of ECMAScript as far as that can be seen: its groups and counts are in order.
func isECMA(text string) bool {
	_, err := regexp.Compile(beyond.ReplaceAllStringFunc(text, func(s string) string {
		switch s[0] {
		case '(':
			return "(?:"
		case '{':
			return "*"
		}
		return "x"
	}))
	return err == nil
}
