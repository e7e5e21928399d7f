// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"io"
	"strings"

	"github.com/platform-ai/platform/pkg/codehost"
)

// Diff reads at most codehost.MaxDiff bytes of a diff. It also reports whether there is more.
func Diff(r io.Reader) (diff string, more bool, err error) {
	raw, err := io.ReadAll(io.LimitReader(r, codehost.MaxDiff+1))
	if err != nil {
		return "", false, err
	}
	diff, more = Cut(string(raw))
	return diff, more, nil
}

// Cut returns a diff as valid UTF-8 with at most codehost.MaxDiff bytes, whole lines of it. It also reports whether there is more. Files
// in other encodings grow, so a diff that was read whole may still be too long.
func Cut(diff string) (string, bool) {
	long := len(diff) > codehost.MaxDiff
	if diff = Text(diff); !long && len(diff) <= codehost.MaxDiff {
		return diff, false
	}
	diff = diff[:min(len(diff), codehost.MaxDiff)]
	return diff[:strings.LastIndexByte(diff, '\n')+1], true
}

// header is what the part of a diff that is about one file begins with. No line of a file does, because a sign is before each.
const header = "diff --git "

// Patches returns the patch of each file in a diff of git, by the file's name, from its first hunk ("@@") and without the end of the
// last line. Files without hunks are left out, and so is the last file of a diff that was cut.
func Patches(diff string, cut bool) map[string]string {
	patches := map[string]string{}
	for rest := diff; rest != ""; {
		part := rest
		if end := strings.Index(rest[1:], "\n"+header); end >= 0 {
			part, rest = rest[:end+2], rest[end+2:]
		} else if rest = ""; cut {
			break
		}
		if name, patch := split(part); name != "" && patch != "" {
			patches[name] = strings.TrimSuffix(patch, "\n")
		}
	}
	return patches
}

// split returns the name of the file that a part of a diff is about, after the change, and what begins with the first hunk.
func split(part string) (name, patch string) {
	for line := range strings.Lines(part) {
		if strings.HasPrefix(line, "@@ ") {
			return name, part
		}
		part = part[len(line):]
		line = strings.TrimSuffix(line, "\n")
		if old, ok := strings.CutPrefix(line, "--- "); ok {
			name = path(old, "a/")
		} else if changed, ok := strings.CutPrefix(line, "+++ "); ok && changed != none {
			name = path(changed, "b/")
		}
	}
	return "", ""
}

// none is the name of a file that does not exist before or after the change.
const none = "/dev/null"

// path returns the name in a line "---" or "+++". Git writes a tab after a name with a space in it, and quotes one with other signs as C
// does.
func path(name, side string) string {
	if quoted, ok := strings.CutPrefix(name, `"`); ok {
		name = unquote(strings.TrimSuffix(quoted, `"`))
	} else {
		name = strings.TrimSuffix(name, "\t")
	}
	return Text(strings.TrimPrefix(name, side))
}

// Part returns the part of a diff that is about one file. The mode of the file is not known here.
func Part(f codehost.File, previous string) string {
	if previous == "" {
		previous = f.Name
	}
	before, after := quote("a/"+previous), quote("b/"+f.Name)
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %s\n", header, before, after)
	switch f.Status {
	case "added":
		before = none
	case "removed":
		after = none
	case "renamed":
		fmt.Fprintf(&b, "rename from %s\nrename to %s\n", quote(previous), quote(f.Name))
	}
	if f.Patch != "" {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n%s\n", before, after, strings.TrimSuffix(f.Patch, "\n"))
	}
	return b.String()
}

// escapes are the letters of C for some signs, which git uses in names. Others are octal numbers of three digits.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', '"': '"', '\\': '\\'}

func unquote(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if sign, ok := escapes[s[i]]; ok {
			b.WriteByte(sign)
		} else if code := byte(0); i+2 < len(s) {
			for _, digit := range []byte(s[i : i+3]) {
				code = code<<3 | digit&7
			}
			b.WriteByte(code)
			i += 2
		}
	}
	return b.String()
}

// quote returns a name as git writes it: one with a sign that would end the line or the name is quoted.
func quote(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) {
		return name
	}
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c == '"', c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ', c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}
