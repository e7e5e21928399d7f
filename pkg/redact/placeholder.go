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
		return allUpper(v[1:])
	case v[0] == '%' && v[len(v)-1] == '%':
		return allUpper(v[1 : len(v)-1])
	case v[0] == '%' && len(v) <= 5:
		verb := strings.TrimRight(v, ":;,.")
		last := verb[len(verb)-1]
		return len(verb) > 1 && len(verb) <= 4 && is(last, alnum) && (last == 'T' || !is(last, capital)) // a formatting verb: %s, %+v
	case v[0] == '<' && v[len(v)-1] == '>':
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
