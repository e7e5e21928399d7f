// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

// maxShown is the size up to which the lines of a file are compared, in bytes.
const maxShown = 1 << 20

// Diff writes the changes of a delta as "git diff --binary --full-index" does, so that "git apply" takes them, as long as limit bytes
// suffice. It returns how many changes it left out because there was no room for them. from has what the files contained before.
func Diff(d *delta.Delta, from *repository.Objects, to io.Writer, limit int64) (left int, err error) {
	for _, c := range d.Changes {
		text, err := diff(d, from, c)
		if err != nil {
			return left, err
		}
		if int64(len(text)) > limit {
			left++
			continue
		}
		limit -= int64(len(text))
		if _, err := io.WriteString(to, text); err != nil {
			return left, err
		}
	}
	return left, nil
}

// content returns what a side of a change contains.
func content(d *delta.Delta, from *repository.Objects, s delta.Side) ([]byte, error) {
	if s == (delta.Side{}) || s.Mode == gitobject.ModeSubmodule {
		return nil, nil
	}
	if o, ok := d.Objects[s.ID]; ok {
		return o.Data, nil
	}
	o, err := from.Object(s.ID)
	return o.Data, err
}

// diff returns one change as text. A file that changes between a link and a file is removed and made anew, as git shows it.
func diff(d *delta.Delta, from *repository.Objects, c delta.Change) (string, error) {
	if c.Was != (delta.Side{}) && c.Is != (delta.Side{}) && (c.Was.Mode == gitobject.ModeLink) != (c.Is.Mode == gitobject.ModeLink) {
		removed, err := diff(d, from, delta.Change{Path: c.Path, Was: c.Was})
		if err != nil {
			return "", err
		}
		made, err := diff(d, from, delta.Change{Path: c.Path, Is: c.Is})
		return removed + made, err
	}
	var out strings.Builder
	old, now := quote("a/"+c.Path), quote("b/"+c.Path)
	fmt.Fprintf(&out, "diff --git %s %s\n", old, now)
	switch {
	case c.Was == (delta.Side{}):
		fmt.Fprintf(&out, "new file mode %s\n", c.Is.Mode)
		old = "/dev/null"
	case c.Is == (delta.Side{}):
		fmt.Fprintf(&out, "deleted file mode %s\n", c.Was.Mode)
		now = "/dev/null"
	case c.Was.Mode != c.Is.Mode:
		fmt.Fprintf(&out, "old mode %s\nnew mode %s\n", c.Was.Mode, c.Is.Mode)
	}
	if c.Was.ID == c.Is.ID {
		return out.String(), nil
	}
	fmt.Fprintf(&out, "index %s..%s", orZero(c.Was.ID), orZero(c.Is.ID))
	if c.Was.Mode == c.Is.Mode {
		out.WriteString(" " + c.Was.Mode)
	}
	out.WriteString("\n")
	before, err := content(d, from, c.Was)
	if err != nil {
		return "", err
	}
	after, err := content(d, from, c.Is)
	if err != nil {
		return "", err
	}
	if delta.IsBinary(before) || delta.IsBinary(after) || len(before) > maxShown || len(after) > maxShown {
		out.WriteString("GIT binary patch\n")
		literal(&out, after)
		literal(&out, before)
		return out.String(), nil
	}
	if len(before)+len(after) > 0 {
		out.WriteString(udiff.Unified(old, now, string(before), string(after)))
	}
	return out.String(), nil
}

func orZero(id string) string {
	if id == "" {
		return strings.Repeat("0", gitobject.NameLength)
	}
	return id
}

// literal writes a content as git's binary patches do.
func literal(out *strings.Builder, data []byte) {
	var zipped bytes.Buffer
	w := zlib.NewWriter(&zipped)
	_, _ = w.Write(data)
	_ = w.Close()
	fmt.Fprintf(out, "literal %d\n", len(data))
	for rest := zipped.Bytes(); len(rest) > 0; {
		n := min(len(rest), 52)
		if n <= 26 {
			out.WriteByte(byte('A' + n - 1))
		} else {
			out.WriteByte(byte('a' + n - 27))
		}
		line := make([]byte, (n+3)/4*4)
		copy(line, rest[:n])
		for i := 0; i < len(line); i += 4 {
			word := binary.BigEndian.Uint32(line[i:])
			var five [5]byte
			for j := 4; j >= 0; j-- {
				five[j] = alphabet85[word%85]
				word /= 85
			}
			out.Write(five[:])
		}
		out.WriteByte('\n')
		rest = rest[n:]
	}
	out.WriteByte('\n')
}

// alphabet85 has the digits of base 85 in git's order.
const alphabet85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// quote returns a path as git shows it: in quotes if it has special characters.
func quote(name string) string {
	special := strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7f })
	if special < 0 {
		return name
	}
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			out.WriteString(`\` + string(rune(c)))
		case c == '\t':
			out.WriteString(`\t`)
		case c == '\n':
			out.WriteString(`\n`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
