// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// harmless are values that state that there is no secret, or that name a type.
var harmless = map[string]bool{
	"null": true, "nil": true, "none": true, "undefined": true, "true": true, "false": true,
	"string": true, "str": true, "string;": true, "str;": true,
}

// isNumber reports whether v is a decimal number.
func isNumber(v string) bool {
	v = strings.TrimPrefix(v, "-")
	digits := false
	for i := range len(v) {
		switch c := v[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-' || c == '_':
		default:
			return false
		}
	}
	return digits
}

// placeholder reports whether v only names the source of a secret: $VAR, ${VAR}, $(cmd), ${{ … }}, %VAR%,
// <your-key>, {{ .Var }} or stars.
func placeholder(v string) bool {
	switch {
	case len(v) < 2:
		return false
	case strings.HasPrefix(v, "${") || strings.HasPrefix(v, "$(") || strings.HasPrefix(v, "{{"):
		return true
	case v[0] == '$':
		return allUpper(v[1:]) || variable(v[1:])
	case v[0] == '%' && v[len(v)-1] == '%':
		return allUpper(v[1 : len(v)-1])
	case v[0] == '%' && len(v) <= 5:
		verb := strings.TrimRight(v, ":;,.")
		last := verb[len(verb)-1]
		return len(verb) > 1 && len(verb) <= 4 && is(last, alnum) && (last == 'T' || !is(last, capital)) // a formatting verb: %s, %+v
	case v[0] == '<' && v[len(v)-1] == '>', strings.HasPrefix(v, "&lt;") && strings.Contains(v, "&gt;"):
		return true
	}
	return strings.Trim(v, "*") == "" || strings.Trim(v, "x") == "" || strings.Trim(v, ".…") == ""
}

func allUpper(v string) bool {
	for i := range len(v) {
		c := v[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return v != ""
}

// variable reports whether v is the name of a variable in small letters that holds a secret: db_password, not the rest of a
// password that begins with a dollar sign.
func variable(v string) bool {
	return strings.IndexByte(v, '_') > 0 && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz_") == "" && keyKind(v) >= secretValue
}

// version reports whether v is the version of a package, or a range of versions: "jsonwebtoken": "^9.0.2".
func version(v string) bool {
	if len(v) > 40 {
		return false
	}
	w := v
	for w != "" && strings.IndexByte("^~>=<v ", w[0]) >= 0 {
		w = w[1:]
	}
	if w == "" || !is(w[0], digit) {
		return false
	}
	end, dots := 0, 0
	for end < len(w) && (is(w[end], digit) || w[end] == '.' && is(w[end-1], digit)) {
		if w[end] == '.' {
			dots++
		}
		end++
	}
	number, rest := w[:end], w[end:]
	for part := range strings.SplitSeq(number, ".") {
		if len(part) > 4 || part == "" {
			return false
		}
	}
	if dots == 0 || dots == 1 && len(w) == len(v) || dots > 2 {
		return false
	}
	if rest == "" {
		return true
	}
	tag := strings.TrimLeft(rest[1:], "abcdefghijklmnopqrstuvwxyz")
	return strings.IndexByte("-+", rest[0]) >= 0 && len(tag) < len(rest)-1 && len(tag) <= 8 && strings.Trim(tag, "0123456789.") == ""
}
